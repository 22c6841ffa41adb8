import { execFile } from 'node:child_process'
import type { Clock, ServiceVerb } from 'svc-gateway/plugin'

/** A unit in systemd's own words. */
export interface UnitState {
  readonly active_state: string
  readonly sub_state: string
  readonly unit_file_state: string
  /** ISO 8601 UTC; null when it never was active. */
  readonly since: string | null
}

/** Why a verb failed: this user may not, systemd did not answer in time, or what it ran failed. */
export const verbProblems = ['not_permitted', 'timed_out', 'failed'] as const

export interface VerbOutcome {
  readonly ok: boolean
  readonly message: string
  readonly problem: typeof verbProblems[number] | null
}

interface Ran { readonly ok: boolean, readonly timedOut: boolean, readonly stdout: string, readonly stderr: string }

const SHOW_MS = 5_000

/** How long a verb may take. */
export const verbTimeoutMs: Readonly<Record<ServiceVerb, number>> = {
  start: 60_000, stop: 30_000, restart: 90_000, enable: 10_000, disable: 10_000
}

/** systemd through its own tool. Where that is not there, or no systemd answers it, there are no units. */
export class Systemd {
  readonly #command: string
  readonly #clock: Clock

  constructor (command: string, clock: Clock) {
    this.#command = command
    this.#clock = clock
  }

  /** Those of the units that systemd has loaded. Never rejects. */
  async units (names: readonly string[]): Promise<ReadonlyMap<string, UnitState>> {
    const asked = ['Id', 'LoadState', 'ActiveState', 'SubState', 'UnitFileState', 'ActiveEnterTimestamp']
    const { stdout } = await this.#run(['show', `--property=${asked.join(',')}`, ...names], SHOW_MS)
    return readUnits(stdout)
  }

  /** Never rejects. */
  async verb (verb: ServiceVerb, unit: string): Promise<VerbOutcome> {
    const own = await this.#run([verb, unit], verbTimeoutMs[verb])
    const { ok, timedOut, stderr } = own.ok || !isRefused(own) ? own : await this.#switched(verb, unit) ?? own
    if (ok) return { ok, message: `${verb} of ${unit} is done`, problem: null }
    if (timedOut) return { ok, message: `systemctl ${verb} ${unit} did not finish within ${verbTimeoutMs[verb] / 1000} s`, problem: 'timed_out' }
    if (isRefused({ stderr })) return { ok, message: notPermitted(verb, unit), problem: 'not_permitted' }
    const why = stderr.trim().split('\n').at(-1) ?? ''
    return { ok, message: why === '' ? `systemctl could not ${verb} ${unit}; see \`journalctl -u ${unit}\`` : why, problem: 'failed' }
  }

  /** What `svc service install` wrote for what polkit cannot grant for one unit alone; null where it does not help. */
  async #switched (verb: ServiceVerb, unit: string): Promise<Ran | null> {
    if (verb !== 'enable' && verb !== 'disable') return null
    const ran = await this.#run(['start', `svc-unit-${verb}@${unit}.service`], verbTimeoutMs[verb])
    return ran.ok || ran.timedOut ? ran : null
  }

  /** Whether a unit is active. Never rejects. */
  async isActive (unit: string): Promise<boolean> {
    return (await this.#run(['is-active', unit], SHOW_MS)).stdout.trim() === 'active'
  }

  #run (args: readonly string[], timeout: number): Promise<Ran> {
    // times in UTC and in words that can be read
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC', SYSTEMD_PAGER: '' }
    return new Promise(resolve => {
      let timedOut = false
      const child = execFile(this.#command, args, { env }, (error, stdout, stderr) => {
        timer.cancel()
        resolve({ ok: error === null, timedOut, stdout, stderr })
      })
      const timer = this.#clock.setTimer(timeout, () => {
        timedOut = true
        // what it started may hold its output open, and one that hangs be deaf to a gentler signal
        child.stdout?.destroy()
        child.stderr?.destroy()
        child.kill('SIGKILL')
      })
    })
  }
}

/** In systemd's words, with a polkit that says no and without one. Pure. */
function isRefused ({ stderr }: Pick<Ran, 'stderr'>): boolean {
  return /Interactive authentication required|Access denied|Permission denied|Operation not permitted/i.test(stderr)
}

function notPermitted (verb: ServiceVerb, unit: string): string {
  return `the user of the gateway may not ${verb} ${unit}: \`sudo svc service install --allow ${unit}\` allows it, with polkit; manually: \`sudo systemctl ${verb} ${unit}\``
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
