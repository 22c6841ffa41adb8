import { isSvcError, messageOf, svcError, type SvcError } from '../../contract/index.js'

const UNREACHABLE = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EACCES', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])

/** HTTP status of an answer that dockerode turned into an error; null when there was no answer. */
export function statusOf (error: unknown): number | null {
  const status = (error as { statusCode?: unknown } | null)?.statusCode
  return typeof status === 'number' ? status : null
}

/** What the engine itself said, without dockerode's wrapping. */
export function engineMessage (error: unknown): string {
  const said = (error as { json?: { message?: unknown } | null } | null)?.json?.message
  return typeof said === 'string' && said !== '' ? said : messageOf(error).replace(/^\(HTTP code \d+\) [^-]*- /, '').trim()
}

/** Podman says 500 instead of 404 when the container goes away while it works on the request. */
export function saysGone (error: unknown): boolean {
  const status = statusOf(error)
  return status === 404 || (status === 500 && /no such container|container has already been removed/i.test(engineMessage(error)))
}

export function containerGone (id: string, cause?: unknown): SvcError {
  return svcError('runtime.not_found', `no container has the id ${id}; it was removed`, { details: { id }, cause })
}

/** Turns whatever a call to the engine threw into one of the runtime's errors. `doing`: `starting engine svc-a`. */
export function engineError (doing: string, endpoint: string, error: unknown): SvcError {
  if (isSvcError(error)) return error
  const code = (error as NodeJS.ErrnoException).code ?? ''
  if (statusOf(error) === null && (UNREACHABLE.has(code) || messageOf(error) === 'socket hang up')) {
    return svcError('runtime.unavailable',
      `the container engine at ${endpoint} cannot be reached (${code === '' ? messageOf(error) : code}) while ${doing}; check that it is running and that the gateway may use it`,
      { details: { endpoint }, cause: error })
  }
  const advice = adviceFor(engineMessage(error))
  return svcError('runtime.failed', `${doing} failed: ${engineMessage(error)}${advice === '' ? '' : `; ${advice}`}`,
    { details: { status: statusOf(error) }, cause: error, ...(isLasting(error) ? { heals: false } : {}) })
}

/** Whether an engine's words mean that a published port is taken. */
export function isPortTaken (message: string): boolean {
  return /port is already allocated|address already in use/i.test(message)
}

/** What the engine would say again about the same container: a wrong parameter, or something that this host lacks. */
function isLasting (error: unknown): boolean {
  if (statusOf(error) === 400) return true
  return /device driver|CDI devices|gathering device information|no such device|executable file not found|exec format error|bind source path does not exist/i.test(engineMessage(error))
}

function adviceFor (message: string): string {
  if (/device driver "?cdi/i.test(message)) {
    return 'this Docker does not support CDI: use version 28.2 or newer, or set "features": {"cdi": true} in its daemon.json (25 or newer)'
  }
  if (/unresolvable CDI devices/i.test(message)) return 'generate the device list with: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'
  if (/container-init binary not found|catatonit/i.test(message)) return 'install catatonit'
  if (/bind source path does not exist|no such file or directory/i.test(message)) return 'create the path or correct it'
  if (/no space left on device/i.test(message)) return 'free some space where the container engine stores its data'
  return ''
}
