import {
  isSvcError, svcError, type ActivityLog, type ActivityNote, type ConfigService, type EventBus, type ModelRegistry,
  type PluginService, type RouteCall, type SlotService, type SvcConfig
} from 'svc-gateway/plugin'
import { applyPlan, driftedSlots, warningsOf } from './apply-plan.js'
import { changedKeys, isTable, pick, type Table } from './changes.js'
import { masked, withoutMasks } from './masked.js'
import type { Reloaded, Saved } from './schemas.js'
import { settingKeys, settingsSchema, type SettingKeys } from './setting-keys.js'

export interface SettingsServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly events: EventBus
  readonly models: ModelRegistry
  readonly plugins: PluginService
  readonly slots: SlotService
}

type Caller = Pick<RouteCall, 'actor' | 'requestId'>
type Note = (learned: ActivityNote) => void

/** svc.toml as operators read and change it. */
export class Settings {
  readonly #services: SettingsServices

  constructor (services: SettingsServices) {
    this.#services = services
  }

  read (): SvcConfig {
    return masked(this.#services.config.snapshot.svc)
  }

  keys (): SettingKeys {
    return settingKeys(settingsSchema(this.#services.config.schema, this.#services.plugins.settings()))
  }

  /** Throws `config.invalid`, `config.parse_error`, `config.write_failed`; nothing is changed then. */
  async save (call: Caller, given: Table): Promise<Saved> {
    // what was read may be sent back as it is
    const { _svc, ...patch } = given
    const { config, plugins, slots } = this.#services
    const changed = await this.#audited(call, 'settings.update', async note => {
      const keys = await this.#changing(note, async () => {
        const next = withoutMasks(patch, config.snapshot.svc)
        await config.patchSvc(next, result => { this.#checkPlugins(result, next) }).catch(asInvalid)
      })
      if (keys.some(key => /^plugins\.(?:allow|disabled|config\..*)$/.test(key))) await plugins.reload()
      return keys
    })
    const plan = applyPlan(changed, this.keys(), driftedSlots(slots))
    return { ...this.read(), _svc: { apply_plan: plan, warnings: warningsOf(config.snapshot.svc) } }
  }

  /**
   * Reads every configuration file again, and what plugins are made of. Broken files are no error: the answer lists what
   * is wrong in them.
   */
  async reload (call: Caller): Promise<Reloaded> {
    const { config, models, plugins, slots } = this.#services
    const changed = await this.#audited(call, 'settings.reload', async note => {
      const keys = await this.#changing(note, async () => { await config.reload() })
      // the registry is read when it is asked for; a slot may wait for what was mended in it
      models.list()
      await plugins.reload()
      if (keys.length === 0) note({ after: { problems: config.snapshot.diagnostics.length } })
      return keys
    })
    const { revision, diagnostics } = config.snapshot
    const plan = applyPlan(changed, this.keys(), driftedSlots(slots))
    return { ...this.read(), _svc: { revision, diagnostics: diagnostics.map(problem => ({ ...problem })), apply_plan: plan } }
  }

  /** Notes what `change` changed, and tells it. */
  async #changing (note: Note, change: () => Promise<void>): Promise<string[]> {
    const { config, events } = this.#services
    const before = config.snapshot.svc
    await change()
    const after = config.snapshot.svc
    const keys = changedKeys(before, after)
    if (keys.length === 0) return keys
    note({ before: masked(pick(before, keys)), after: masked(pick(after, keys)) })
    events.emit({ type: 'system.config_save', source: 'system', message: `settings changed: ${keys.join(', ')}`, data: { keys } })
    return keys
  }

  /** Only what the patch touches: a table that was wrong before must not keep a user from changing something else. */
  #checkPlugins (next: SvcConfig, patch: Table): void {
    const tables = isTable(patch.plugins) && isTable(patch.plugins.config) ? Object.keys(patch.plugins.config) : []
    const fields = tables.flatMap(name => this.#services.plugins.checkConfig(name, next.plugins.config[name] ?? {})
      .map(({ path, message }) => ({ path: `plugins.config.${name}${path === '' ? '' : `.${path}`}`, message })))
    if (fields.length > 0) throw invalid(fields)
  }

  #audited<T> ({ actor, requestId }: Caller, action: string, work: (note: Note) => Promise<T>): Promise<T> {
    return this.#services.activity.audited({ category: 'settings', action, target: 'svc.toml', actor, request_id: requestId }, work)
  }
}

function invalid (fields: ReadonlyArray<{ readonly path: string, readonly message: string }>): Error {
  return svcError('config.invalid', `the settings are not valid: ${fields.map(({ path, message }) => `${path} ${message}`).join('; ')}`,
    { details: { fields }, param: fields[0]!.path })
}

/** The group's own code for what every other writer calls `validation.*`. */
function asInvalid (error: unknown): never {
  if (!isSvcError(error) || !error.code.startsWith('validation.')) throw error
  const { message, details, param } = error
  throw svcError('config.invalid', message, { details, cause: error, ...(param === null ? {} : { param }) })
}
