import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from 'svc-gateway/plugin'

export interface Propagated {
  readonly slot: string
  readonly model: string
  readonly timeout_s: number
  readonly drop_in: string
  readonly written: boolean
  readonly daemon_reloaded: boolean
  readonly restarted: boolean
  /** Why it did not get through, and what to do; null if it did. */
  readonly error: string | null
}

export interface UnitPlace {
  /** The tool that speaks to systemd. */
  readonly systemctl: string
  /** Folder of units. */
  readonly folder: string
}

const UNIT = 'hindsight-api.service'
const SHOW_MS = 5_000
const RESTART_MS = 90_000

/** Tells a Hindsight server that systemd runs which model to extract with. Never rejects: the settings stay either way. */
export async function propagate ({ systemctl, folder }: UnitPlace, slot: string, timeoutS: number): Promise<Propagated> {
  const drop = join(folder, `${UNIT}.d`, 'extraction-model.conf')
  const model = `svc/${slot}`
  // with a schema that is only described in words, what small models answer is thrown away
  const variables = [`HINDSIGHT_API_LLM_MODEL=${model}`, `HINDSIGHT_API_LLM_TIMEOUT=${timeoutS}`, 'HINDSIGHT_API_LLM_STRICT_SCHEMA=true']
  const done = { written: false, daemon_reloaded: false, restarted: false }
  const told = (error: string | null): Propagated => ({ slot, model, timeout_s: timeoutS, drop_in: drop, ...done, error })
  const run = (args: readonly string[], timeout: number): Promise<string | null> => new Promise(resolve => {
    execFile(systemctl, args, { timeout }, (error, _stdout, stderr) => {
      resolve(error === null ? null : stderr.trim() || error.message)
    })
  })
  if (await run(['cat', UNIT], SHOW_MS) !== null) {
    return told(`systemd does not run ${UNIT} here: set ${variables.slice(0, -1).join(', ')} and ${variables.at(-1)} where the server is started, and restart it`)
  }
  try {
    await mkdir(join(folder, `${UNIT}.d`), { recursive: true })
    await writeFile(drop, `[Service]\n${variables.map(line => `Environment="${line}"\n`).join('')}`)
    done.written = true
  } catch (error) {
    return told(`${drop} cannot be written: ${messageOf(error)}`)
  }
  const reload = await run(['daemon-reload'], SHOW_MS)
  if (reload !== null) return told(`systemd could not reload its units: ${reload}`)
  done.daemon_reloaded = true
  const restart = await run(['restart', UNIT], RESTART_MS)
  if (restart !== null) return told(`${UNIT} did not restart: ${restart}`)
  done.restarted = true
  return told(null)
}
