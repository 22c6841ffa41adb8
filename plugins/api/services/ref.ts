import { createServiceRef, type NpmProgram, type PythonProgram, type ServiceDescriptor, type ServiceVerb } from 'svc-gateway/plugin'

export { removeFolder, type Remains } from './data-folder.js'

/** How a service runs here: by systemd, in an environment or a container of the gateway's, as a slot, or as an agent. */
export const serviceForms = ['unit', 'python', 'container', 'slot', 'agent'] as const
export type ServiceForm = typeof serviceForms[number]

/** As a program that the gateway runs. */
export const programForms = ['python', 'container'] as const
export type ProgramForm = typeof programForms[number]

export const installForms = [...programForms, 'slot'] as const
export type InstallForm = typeof installForms[number]

export const installStates = ['absent', 'installing', 'installed', 'failed'] as const

export interface InstallStatus {
  readonly state: typeof installStates[number]
  /** What is installed, or on its way; null for `absent`. */
  readonly form: InstallForm | null
  readonly version: string | null
  /** What goes on, or went wrong. */
  readonly message: string
  /** Settings of svc.toml that were changed for it, `dispatcher.list_unloaded = true`. */
  readonly settings: readonly string[]
}

/** What can be brought here, with what a user wants to know first. */
export interface ServiceOffer {
  readonly service: ServiceDescriptor
  /** Best first; empty where nothing can be brought. */
  readonly forms: readonly InstallForm[]
  /** Disk that it takes in the best form; null if unknown. */
  readonly bytes: number | null
  readonly installed: boolean
}

/** Installs services and says what could be installed. */
export interface Companions {
  offers (): Promise<readonly ServiceOffer[]>
  /** Goes on when the caller leaves. Throws `services.unknown` or `services.cannot_install`, and rejects with what went wrong. */
  install (id: string, form?: InstallForm): Promise<InstallStatus>
  /**
   * Starts it, now and with the gateway; a slot is left to its requests. Null once it answers, else why it does not. Throws
   * `services.unknown`.
   */
  bringUp (id: string): Promise<string | null>
}

export const companionsRef = createServiceRef<Companions>('api-services.companions')

/** What another plugin installs and runs, and shows as a service. */
export interface ServiceRunner {
  /** Id of its program among those that the gateway runs. */
  readonly daemon: string
  /** Command that brings it. */
  readonly brings: string
  /** Null while it is not here. */
  installed (): { readonly version: string | null } | null
  /** Rejects with what went wrong; else says how it is now. */
  act (verb: ServiceVerb): Promise<string>
}

/** Finds what runs a service that has no unit, by its id. */
export type FindRunner = (service: string) => ServiceRunner | undefined

export interface ServiceRunners {
  add (find: FindRunner): void
}

export const runnersRef = createServiceRef<ServiceRunners>('api-services.runners')

/** One of the two. */
export interface PackageOrder {
  readonly npm?: NpmProgram | undefined
  readonly python?: Omit<PythonProgram, 'command'> | undefined
}

export interface BringOptions {
  readonly folder: string
  readonly signal: AbortSignal
  readonly onMessage: (message: string) => void
}

/** Packages of registries, each in a folder of its own whose name begins with `env-`. */
export interface Environments {
  /** Throws `services.cannot_install` where a package cannot be brought: registries switched off, no installer, a full disk. */
  check (order: PackageOrder, folder: string): Promise<void>
  /**
   * Installs beside what is in the folder; resolves with the name of the new one once the version that was asked for is in it.
   * A failed one is removed. Throws `services.cannot_install` or `services.install_failed`.
   */
  install (order: PackageOrder, options: BringOptions): Promise<string>
  /** Removes all of them from the folder but one. */
  sweep (folder: string, but: string | null): Promise<void>
}

export const environmentsRef = createServiceRef<Environments>('api-services.environments')
