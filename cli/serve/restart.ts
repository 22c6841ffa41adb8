import type { Installation } from '../../kernel/contract/index.js'
import { packageRoot } from '../../kernel/config/package-root.js'
import type { Cli } from '../cli.js'
import { JOB_NAME } from '../unit/gateway-unit.js'

export interface OwnInstallation {
  readonly installation: Installation
  /** Resolves when the gateway is to end and be started again. */
  readonly wanted: Promise<void>
}

/** This package, with a way to be started again where something does that: a service manager, or the launcher of releases. */
export function installationOf ({ env, process: { pid } }: Cli): OwnInstallation {
  let restart = (): void => {}
  const wanted = new Promise<void>(resolve => { restart = resolve })
  return { installation: { root: packageRoot, restart: isSupervised(env, pid, process.ppid) ? restart : null }, wanted }
}

/**
 * Whether this process is started again when it ends with a failure. A child of systemd's or launchd's child has the same
 * environment, and is not. Pure.
 */
function isSupervised (env: Readonly<Record<string, string | undefined>>, pid: number, ppid: number): boolean {
  const { SVC_SUPERVISED: said, SYSTEMD_EXEC_PID: systemd, XPC_SERVICE_NAME: launchd, SVC_LAUNCHED: launcher } = env
  return said === '1' || systemd === String(pid) || launchd === JOB_NAME || launcher === String(ppid)
}
