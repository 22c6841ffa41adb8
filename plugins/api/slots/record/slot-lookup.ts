import { svcError, type ConfigService, type NamedSlotConfig, type SlotService, type SvcError } from 'svc-gateway/plugin'

export interface LookupServices {
  readonly config: ConfigService
  readonly slots: SlotService
}

/** The slot's configuration. Throws `slot.not_found`, with what is wrong in the slot's file when that is why. */
export function requireSlot ({ config, slots }: LookupServices, name: string): NamedSlotConfig {
  if (!slots.names().includes(name)) throw unknownSlot(config, name)
  return slots.config(name)
}

/** As `requireSlot`, for what needs only the slot's file: null for a slot that is left out because that cannot be read. */
export function requireSlotFile (services: LookupServices, name: string): NamedSlotConfig | null {
  return services.slots.unread().some(unread => unread.name === name) ? null : requireSlot(services, name)
}

/** A slot whose file was broken when it was first read is no slot; its problems are known anyway. */
function unknownSlot (config: ConfigService, name: string): SvcError {
  const file = fileOf(name)
  const problems = config.snapshot.diagnostics.filter(diagnostic => diagnostic.file === file)
  if (problems.length === 0) {
    return svcError('slot.not_found', `no such slot: '${name}'; GET /api/slots lists all slots`, { details: { slot: name } })
  }
  const listed = problems.map(({ path, message, line }) =>
    `${path === '' ? '' : `${path} `}${message}${line === undefined ? '' : ` (line ${line})`}`)
  return svcError('slot.not_found',
    `slot '${name}' is not available because its file ${file} is invalid: ${listed.join('; ')}; fix it, then POST /api/settings/reload, or DELETE /api/slots/${name}`,
    { details: { slot: name, file, problems: problems.map(({ path, message }) => ({ path, message })) } })
}

/** The file of a slot, as diagnostics name it. */
export function fileOf (name: string): string {
  return `slots/${name}.toml`
}
