import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isSvcError, type ConfigService } from 'svc-gateway/plugin'
import { proxmoxError } from './errors.js'
import { fileSchema, type HostSettings, type SettingsBody } from './schemas.js'

const FILE = 'proxmox.json'
const MAX_BYTES = 64 * 1024
const NEXT_STEP = 'save the settings with the token again, or DELETE them'

export type StoredSettings =
  | { readonly kind: 'none' }
  | { readonly kind: 'ok', readonly settings: HostSettings }
  /** `problem` says what is wrong with the file and holds nothing of it. */
  | { readonly kind: 'broken', readonly problem: string }

/** `/etc/svc/proxmox.json`, mode 0600. It is read whenever it is needed: it is small, and people edit it. */
export class SettingsFile {
  readonly #config: ConfigService

  constructor (config: ConfigService) {
    this.#config = config
  }

  async read (): Promise<StoredSettings> {
    const path = join(this.#config.paths.etc, FILE)
    try {
      const stats = await stat(path)
      if (!stats.isFile() || stats.size > MAX_BYTES) return broken('is not a settings file')
      return parsed(await readFile(path, 'utf8'))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return code === 'ENOENT' ? { kind: 'none' } : broken(`cannot be read (${code ?? 'unknown'})`)
    }
  }

  /** Keeps the stored token when the body has none. Throws `proxmox.token_required`, `proxmox.write_failed`. */
  async save ({ host, port, user, token_name, token_value: given, verify_ssl }: SettingsBody): Promise<HostSettings> {
    return await this.#config.change(async draft => {
      const token_value = given ?? storedToken(await this.read())
      if (token_value === null) throw tokenRequired('no token is stored yet')
      const content = { proxmox: { host, port, verify_ssl, service: 'PVE' }, auth: { user, token_name, token_value } }
      await draft.putPrivate(FILE, `${JSON.stringify(content, null, 2)}\n`)
      return { host, port, user, token_name, token_value, verify_ssl }
    }).catch(asWriteFailure)
  }

  /** Whether there were any, readable or not. Throws `proxmox.write_failed`. */
  async remove (): Promise<boolean> {
    return await this.#config.change(draft => draft.putPrivate(FILE, null)).catch(asWriteFailure)
  }
}

export function tokenRequired (why: string): Error {
  return proxmoxError('proxmox.token_required', `${why}: token_value is required`, { param: 'token_value' })
}

/** Pure. */
export function parsed (text: string): StoredSettings {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    return broken('is not valid JSON')
  }
  const { data, error } = fileSchema.safeParse(content)
  if (data === undefined) {
    const { path, message } = error.issues[0]!
    return broken(`${path.join('.')} ${message.startsWith('must') ? message : 'is missing or wrong'}`.trim())
  }
  const { proxmox: { host, port, verify_ssl }, auth: { user, token_name, token_value } } = data
  return { kind: 'ok', settings: { host, port, user, token_name, token_value, verify_ssl } }
}

function broken (what: string): StoredSettings {
  return { kind: 'broken', problem: `${FILE} ${what}; ${NEXT_STEP}` }
}

function storedToken (stored: StoredSettings): string | null {
  return stored.kind === 'ok' ? stored.settings.token_value : null
}

function asWriteFailure (error: unknown): never {
  if (!isSvcError(error) || error.code !== 'config.write_failed') throw error
  throw proxmoxError('proxmox.write_failed', error.message, { details: error.details, cause: error })
}
