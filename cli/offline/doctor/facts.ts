import type { Runtimes } from '../../record/runtimes.js'
import type { ClusterSurvey } from '../../../plugins/runtimes/kubernetes/survey/survey.js'
import type { HardwareInfo, SvcConfig } from '../../../kernel/contract/index.js'
import type { FileVerdict } from '../config/validate.js'

/** What was seen of this machine and this home. Null is what could not be told. */
export interface DoctorFacts {
  readonly platform: NodeJS.Platform
  readonly arch: string
  /** Without the v. */
  readonly nodeVersion: string
  /** The least that this release runs on. */
  readonly nodeLeast: string
  readonly hasSystemctl: boolean
  /** Folders that the gateway writes to. */
  readonly folders: ReadonlyArray<{ readonly path: string, readonly what: string, readonly problem: string | null }>
  readonly driver: SvcConfig['runtime']['driver']
  /** In the order in which the gateway tries them, up to the first that does. `problem` is null for that one. */
  readonly engines: ReadonlyArray<{ readonly source: string, readonly problem: string | null, readonly name: string }>
  /** Whether child processes find an engine for models: an installed program or the embedded one. */
  readonly hasProcessEngine: boolean
  readonly hardware: HardwareInfo | null
  readonly nodes: readonly DeviceNode[]
  readonly user: string
  readonly disk: { readonly path: string, readonly freeBytes: number | null, readonly leastGb: number }
  readonly ports: readonly PortFacts[]
  readonly files: readonly FileVerdict[]
  /** Null where no cluster is named. */
  readonly cluster: ClusterSurvey | null
  /** Plugins that are not in force as they are installed, and why. */
  /** As the gateway tells them; null while none runs. */
  readonly runtimes: Runtimes | null
  readonly plugins: ReadonlyArray<{ readonly name: string, readonly problem: string }>
  /** Port of this home's gateway that a gateway of another home answers on. */
  readonly neighbour: { readonly port: number, readonly home: string | null } | null
  readonly gateway: { readonly url: string | null, readonly status: string | null, readonly problem: string | null }
  /** Images of the manifest that the container engine has; null without an engine. */
  readonly images: { readonly present: readonly string[], readonly absent: readonly string[] } | null
}

export interface DeviceNode {
  readonly path: string
  readonly canOpen: boolean
  /** Group of the node, by name where it has one. */
  readonly group: string
}

export interface PortFacts {
  readonly port: number
  /** What it is for; null when it was only asked for on the command line. */
  readonly use: string | null
  readonly isSlot: boolean
  /** Null for a free port. */
  readonly holder: { readonly pid: number | null, readonly command: string } | null
  /** The holder is a gateway of this home, or an engine of it. */
  readonly isOwn: boolean
}
