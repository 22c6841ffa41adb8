import { execFile } from 'node:child_process'
import { messageOf } from 'svc-gateway/plugin'
import { installError } from './errors.js'

/** Units that may be restarted from here, and no others. */
export const repairableUnits = [
  { unit: 'svc-openwebui.service', label: 'Open WebUI' },
  { unit: 'svc-api.service', label: 'Gateway' },
  { unit: 'hindsight-api.service', label: 'Memory engine' },
  { unit: 'svc-agent@hermes.service', label: 'Agent hermes' },
  { unit: 'svc-slot@img.service', label: 'Image engine' }
] as const

const OWN_UNIT = 'svc-api.service'
const aliases: Readonly<Record<string, string>> = { comfyui: 'svc-slot@img.service' }

const STATUS_MS = 5_000
const RESTART_MS = 90_000

export interface UnitRow {
  readonly unit: string
  readonly label: string
  readonly active: boolean
  readonly repairable: boolean
}

export interface RepairedUnit {
  readonly unit: string
  readonly active: boolean
  readonly deferred?: true
}

/** How every one of them is; without systemd none is up and none can be repaired. Never rejects. */
export async function listUnits (): Promise<readonly UnitRow[]> {
  const { stdout, error } = await systemctl(['is-active', ...repairableUnits.map(({ unit }) => unit)], STATUS_MS)
  // it ends with a failure as soon as one of them is not up
  const states = stdout.trim().split('\n')
  const isThere = error?.code !== 'ENOENT' && states.length === repairableUnits.length
  return repairableUnits.map((row, i) => ({ ...row, active: isThere && states[i] === 'active', repairable: isThere }))
}

/**
 * Restarts a unit of the list and tells whether it is up then. Our own is restarted after the answer (`deferred`). Throws
 * `install.unit_not_repairable`, and `install.pick_default_failed` when it does not restart.
 */
export async function repairUnit (name: string): Promise<RepairedUnit> {
  const unit = Object.hasOwn(aliases, name) ? aliases[name]! : name
  const allowed = repairableUnits.map(row => row.unit)
  if (!allowed.some(other => other === unit)) {
    throw installError('install.unit_not_repairable', `'${name}' cannot be restarted through the gateway; these can: ${allowed.join(', ')}`,
      { details: { unit: name, allowed: [...allowed, ...Object.keys(aliases)] } })
  }
  const deferred = unit === OWN_UNIT
  const { error, stderr } = await systemctl(['restart', ...(deferred ? ['--no-block'] : []), unit], RESTART_MS)
  if (error?.code === 'ENOENT') {
    throw installError('install.unit_not_repairable', `${unit} cannot be restarted: this host has no systemd (no systemctl); restart it the way it was started`,
      { details: { unit, allowed: [] } })
  }
  if (error !== null) {
    const why = stderr.trim().split('\n').at(-1) ?? ''
    throw installError('install.pick_default_failed', `${unit} failed to restart: ${why === '' ? messageOf(error) : why}; see \`journalctl -u ${unit}\``,
      { details: { unit } })
  }
  const { stdout } = await systemctl(['is-active', unit], STATUS_MS)
  return { unit, active: stdout.trim() === 'active', ...(deferred ? { deferred } : {}) }
}

interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly error: (Error & { code?: string | number | null }) | null
}

function systemctl (args: readonly string[], timeoutMs: number): Promise<Ran> {
  return new Promise(resolve => {
    execFile('systemctl', args, { timeout: timeoutMs }, (error, stdout, stderr) => resolve({ stdout, stderr, error }))
  })
}
