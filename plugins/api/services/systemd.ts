import { execFile } from 'node:child_process'
import type { ServiceVerb } from 'svc-gateway/plugin'

/** A unit in systemd's own words. */
export interface UnitState {
  readonly active_state: string
  readonly sub_state: string
  readonly unit_file_state: string
  /** ISO 8601 UTC; null when it never was active. */
  readonly since: string | null
}

export interface VerbOutcome {
  readonly ok: boolean
  readonly message: string
}

const SHOW_MS = 5_000

/** How long a verb may take. */
export const verbTimeoutMs: Readonly<Record<ServiceVerb, number>> = {
  start: 60_000, stop: 30_000, restart: 90_000, enable: 10_000, disable: 10_000
}

/** systemd through its own tool. Where that is not there, or no systemd answers it, there are no units. */
export class Systemd {
  readonly #command: string

  constructor (command: string) {
    this.#command = command
  }

  /** Those of the units that systemd has loaded. Never rejects. */
  async units (names: readonly string[]): Promise<ReadonlyMap<string, UnitState>> {
    const asked = ['Id', 'LoadState', 'ActiveState', 'SubState', 'UnitFileState', 'ActiveEnterTimestamp']
    const { stdout } = await this.#run(['show', `--property=${asked.join(',')}`, ...names], SHOW_MS)
    return readUnits(stdout)
  }

  /** Never rejects. */
  async verb (verb: ServiceVerb, unit: string): Promise<VerbOutcome> {
    const { ok, stderr } = await this.#run([verb, unit], verbTimeoutMs[verb])
    const why = stderr.trim().split('\n').at(-1) ?? ''
    return { ok, message: ok ? `${verb} of ${unit} is done` : why === '' ? `systemctl could not ${verb} ${unit}; see \`journalctl -u ${unit}\`` : why }
  }

  /** Whether a unit is active. Never rejects. */
  async isActive (unit: string): Promise<boolean> {
    return (await this.#run(['is-active', unit], SHOW_MS)).stdout.trim() === 'active'
  }

  #run (args: readonly string[], timeout: number): Promise<{ ok: boolean, stdout: string, stderr: string }> {
    // times in UTC and in words that can be read
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC', SYSTEMD_PAGER: '' }
    return new Promise(resolve => {
      execFile(this.#command, args, { timeout, env }, (error, stdout, stderr) => resolve({ ok: error === null, stdout, stderr }))
    })
  }
}

/** Blocks of `Name=value`, one for each unit. Pure. */
export function readUnits (text: string): ReadonlyMap<string, UnitState> {
  const units = new Map<string, UnitState>()
  for (const block of text.split(/\n\s*\n/)) {
    const { Id: id, LoadState: load, ActiveState: active, SubState: sub, UnitFileState: file, ActiveEnterTimestamp: entered } =
      Object.fromEntries(block.trim().split('\n').map(line => line.split(/=(.*)/s, 2))) as Record<string, string | undefined>
    if (id === undefined || load !== 'loaded') continue
    units.set(id, { active_state: active ?? '', sub_state: sub ?? '', unit_file_state: file ?? '', since: isoOf(entered ?? '') })
  }
  return units
}

/** `Mon 2026-11-23 07:00:00 UTC`, and nothing for a unit that never ran. */
function isoOf (text: string): string | null {
  const [, date, time] = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)/.exec(text) ?? []
  return date === undefined || time === undefined ? null : `${date}T${time}Z`
}
