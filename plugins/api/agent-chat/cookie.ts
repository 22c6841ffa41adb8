import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from 'svc-gateway/plugin'

const NAME = 'svc_session'
const VALID_S = 24 * 3600
const VALUE = /^(?<id>[0-9a-f]{32})\.(?<at>\d{1,12})\.(?<mark>[\w-]{43})$/

/**
 * Says which browser it is: an id with the time and a signature, for one agent and a day. What a page of another origin opens
 * does not carry it, and one that was made elsewhere is not taken.
 */
export class SessionCookies {
  readonly #file: () => string
  readonly #clock: Pick<Clock, 'now'>
  #secret: Promise<Buffer> | null = null

  /** @param file of the secret, which is made when it is first needed */
  constructor (file: () => string, clock: Pick<Clock, 'now'>) {
    this.#file = file
    this.#clock = clock
  }

  /** A new one, as the value of `Set-Cookie`. */
  async issue (agent: string): Promise<string> {
    const id = randomBytes(16).toString('hex')
    const at = Math.floor(this.#clock.now() / 1000)
    const value = `${id}.${at}.${await this.#mark(agent, id, at)}`
    return `${NAME}=${value}; Path=/api/agents/${agent}; Max-Age=${VALID_S}; HttpOnly; SameSite=Strict`
  }

  /** The id in a request's `Cookie`; null without a valid one. */
  async read (agent: string, header: string | undefined): Promise<string | null> {
    const given = (header ?? '').split(';').map(part => part.trim()).filter(part => part.startsWith(`${NAME}=`))
    for (const part of given.slice(0, 8)) {
      const { id, at, mark } = VALUE.exec(part.slice(NAME.length + 1))?.groups ?? {}
      if (id === undefined) continue
      const age = this.#clock.now() / 1000 - Number(at)
      const isOurs = timingSafeEqual(Buffer.from(await this.#mark(agent, id, Number(at))), Buffer.from(mark!))
      if (isOurs && age < VALID_S) return id
    }
    return null
  }

  async #mark (agent: string, id: string, at: number): Promise<string> {
    this.#secret ??= secretIn(this.#file())
    const secret = await this.#secret.catch((error: unknown) => {
      this.#secret = null
      throw error
    })
    return createHmac('sha256', secret).update(`${agent}.${id}.${at}`).digest('base64url')
  }
}

/** Whole or not at all: half a secret would be a weak one for good. */
async function secretIn (file: string): Promise<Buffer> {
  const known = await readFile(file).catch(() => null)
  if (known?.length === 32) return known
  const made = randomBytes(32)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(`${file}.new`, made, { mode: 0o600, flush: true })
  await rename(`${file}.new`, file)
  return made
}
