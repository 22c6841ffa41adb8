import { isAbsolute } from 'node:path'
import {
  deviceClassOf, gpuBackendOf, isSvcError, messageOf, shareGpu, svcError, type EngineProvider, type ErrorCode,
  type NamedSlotConfig, type SlotProblem, type SlotRule
} from '../../contract/index.js'
import { invalid } from '../../config/check/shape-check.js'
import { typeMisfit } from '../../models/eligibility.js'
import { modelOfPath } from '../../models/path-model.js'
import { checkAnchors } from './anchor-rules.js'
import { checkReplicas } from './replica-rules.js'
import { checkRuntime } from './runtime-rules.js'
import { extraArgsWords, profileWords, serverEnv } from '../plan/argv/flag-texts.js'
import { profileMisfit } from '../plan/profile/profile-fit.js'
import { checkOptions } from '../plan/slot-options.js'
import { runsElsewhere } from '../plan/slot-runtime.js'
import type { Report, RivalContext, SlotSetContext } from './slot-rule-context.js'

export type { RivalContext, SlotSetContext }

/**
 * Every rule between slots and inside one, on all slots as they would be, in their order. Pure. Every
 * writer asks here before it writes; a clash is told for each slot that has a part in it. A provider that is not there
 * is no problem: its plugin may be away for now, which is told when the slot is loaded.
 */
export function checkSlotSet (slots: readonly NamedSlotConfig[], context: SlotSetContext): readonly SlotProblem[] {
  const problems: SlotProblem[] = []
  const report: Report = (slot, rule, code, message, { param, details = {} } = {}) => {
    problems.push({ slot: slot.name, rule, code, message, param: param ?? null, details: { slot: slot.name, ...details } })
  }
  checkCapacity(slots, context, report)
  checkAnchors(slots, context, report)
  checkPorts(slots, context, report)
  checkDefaults(slots, report)
  checkExclusivity(slots, context, report)
  for (const slot of slots) checkAlone(slot, context, report)
  return problems
}

/** The problem as the error that a writer throws. */
export function slotProblemError ({ code, message, param, details }: SlotProblem): Error {
  return svcError(code, message, { details, ...(param === null ? {} : { param }) })
}

function checkCapacity (slots: readonly NamedSlotConfig[], { maxSlots }: SlotSetContext, report: Report): void {
  if (maxSlots === 0) return
  for (const slot of slots.slice(maxSlots)) {
    report(slot, 'capacity', 'slot.capacity_exhausted', `there are ${maxSlots} slots, which is the limit of max_slots`, { details: { max_slots: maxSlots } })
  }
}

/** Ports are not shared, except by slots of one process. */
function checkPorts (slots: readonly NamedSlotConfig[], { gatewayPort }: SlotSetContext, report: Report): void {
  for (const group of groupsOf(slots, slot => slot.port)) {
    for (const slot of group) {
      const owners = group.filter(other => !sameProcess(slot, other)).map(other => other.name)
      if (slot.port === gatewayPort) owners.push('the gateway')
      if (owners.length === 0) continue
      const owner = owners[0] === 'the gateway' ? owners[0] : `slot '${owners[0]}'`
      report(slot, 'port', 'slot.port_conflict', `port ${slot.port} belongs to ${owner}; leave \`port\` out to get a free one`,
        { param: 'port', details: { port: slot.port, owners } })
    }
  }
}

/** At most one default slot per type. */
function checkDefaults (slots: readonly NamedSlotConfig[], report: Report): void {
  for (const group of groupsOf(slots.filter(slot => slot.default), slot => slot.type)) {
    for (const slot of group) {
      const others = group.filter(other => other !== slot).map(other => other.name)
      if (others.length === 0) continue
      report(slot, 'default', 'slot.config_error', `'${others[0]}' is already the default ${slot.type} slot; remove \`default\` from one of them`,
        { param: 'default', details: { type: slot.type, conflicting_slots: others } })
    }
  }
}

/** What enabled slots claim of a device: the NPU runs one llm engine; other claims are their providers' to make. */
function checkExclusivity (slots: readonly NamedSlotConfig[], context: SlotSetContext, report: Report): void {
  for (const [slot, rivals] of rivalsOf(slots, context)) {
    const names = rivals.map(rival => rival.name)
    const details = { conflicting_slots: names, hint: `svc slot edit ${names[0]} --disable` }
    if (context.device(slot) === 'npu') {
      report(slot, 'exclusivity', 'slot.npu_exclusivity_violation',
        `the NPU runs one engine at a time and '${names[0]}' has it; disable that slot first`, { details })
      continue
    }
    report(slot, 'exclusivity', 'slot.config_error',
      `slots '${slot.name}' and '${names[0]}' both need device ${context.device(slot)} to themselves; disable one of them`, { param: 'device', details })
  }
}

/** Slots that cannot run beside each other, each with those it clashes with. Pure. */
export function rivalsOf (
  slots: readonly NamedSlotConfig[], context: RivalContext
): ReadonlyMap<NamedSlotConfig, readonly NamedSlotConfig[]> {
  const isHere = (slot: NamedSlotConfig): boolean => !runsElsewhere(slot, context.providers, context.runtime)
  const running = slots.filter(slot => slot.enabled && slot.served_by === null && isHere(slot))
  const rivals = new Map<NamedSlotConfig, readonly NamedSlotConfig[]>()
  for (const slot of running) {
    const found = running.filter(other => other !== slot && excludeEachOther(slot, other, context))
    if (found.length > 0) rivals.set(slot, found)
  }
  return rivals
}

/**
 * Throws when a slot cannot run beside one of those that do. Writers keep such slots from being enabled together; files
 * that were written by hand may say otherwise, and then the first one that is asked for has the device.
 */
export function assertNoRival (
  name: string, running: readonly NamedSlotConfig[], context: RivalContext
): void {
  const [, [rival] = []] = [...rivalsOf(running, context)].find(([slot]) => slot.name === name) ?? []
  if (rival === undefined) return
  const code = context.device(rival) === 'npu' ? 'slot.npu_exclusivity_violation' : 'slot.config_error'
  throw svcError(code, `slot '${name}' cannot run beside '${rival.name}', which is running; unload that slot first`,
    { details: { slot: name, conflicting_slots: [rival.name], hint: `svc slot unload ${rival.name}` }, heals: true })
}

function excludeEachOther (a: NamedSlotConfig, b: NamedSlotConfig, { providers, device, gpus }: RivalContext): boolean {
  const [deviceA, deviceB] = [device(a), device(b)]
  if (deviceA === 'npu' && deviceB === 'npu' && a.type === 'llm' && b.type === 'llm') return true
  const deviceClass = deviceClassOf(deviceA)
  if (deviceClass !== deviceClassOf(deviceB)) return false
  if (deviceClass === 'gpu' && !shareGpu({ device: deviceA, gpuIndex: a.gpu_index }, { device: deviceB, gpuIndex: b.gpu_index }, gpus)) return false
  const claims = [providers.get(a.provider)?.exclusivity, providers.get(b.provider)?.exclusivity]
  if (claims.every(claim => claim === 'exclusive')) return true
  return a.provider === b.provider && claims[0] === 'coexist-by-type' && a.type === b.type
}

/** Rules that need no other slot. */
function checkAlone (slot: NamedSlotConfig, context: SlotSetContext, report: Report): void {
  checkReplicas(slot, context, report)
  const provider = context.providers.get(slot.provider)
  if (provider === undefined) return
  if (!provider.slotTypes.includes(slot.type)) {
    report(slot, 'provider', 'slot.config_error', `provider ${provider.name} runs ${provider.slotTypes.join(', ')} slots, not ${slot.type}`,
      { param: 'type', details: { provider: provider.name, types: provider.slotTypes } })
  }
  if (slot.device !== undefined && !provider.devices.includes(slot.device)) {
    report(slot, 'provider', 'slot.config_error', `provider ${provider.name} runs on ${provider.devices.join(', ')}, not ${slot.device}`,
      { param: 'device', details: { provider: provider.name, devices: provider.devices } })
  }
  const model = slot.model.default
  if (slot.served_by === null && model !== null && provider.models?.canonical(model) === null) {
    report(slot, 'model', 'slot.config_error', `'${model}' is not a model of ${provider.title}`, { param: 'model.default', details: { model } })
  }
  const deviceClass = deviceClassOf(context.device(slot))
  if (slot.mtp === true && deviceClass !== 'gpu') {
    report(slot, 'args', 'slot.config_error', `multi-token prediction needs a GPU, but slot '${slot.name}' runs on the ${deviceClass}; set mtp to false or null`,
      { param: 'mtp' })
  }
  checkArgs(slot, provider, report)
  const options = checkOptions(slot, provider).problems
  if (options.length > 0) {
    const { code, message, details, param } = invalid(`slot '${slot.name}'`, options)
    report(slot, 'options', code as ErrorCode, message, { details, ...(param === null ? {} : { param }) })
  }
  checkRuntime(slot, context, report)
  checkProfile(slot, provider, context, report)
  // what a provider says of a slot it says of options that it can read
  if (options.length > 0) return
  const profile = slot.profile ?? provider.defaultProfile?.(context.device(slot), slot.type) ?? null
  const row = model === null ? null : context.model(model) ?? (isAbsolute(model) ? modelOfPath(model) : null)
  const place = { device: context.device(slot), model: row }
  const problem = provider.slotProblem?.(slot, profile === null ? null : context.profiles.get(profile) ?? null, place) ?? null
  if (problem !== null) report(slot, 'fit', 'slot.config_error', problem)
  const names = context.providers.list().flatMap(({ modelNames }) => modelNames ?? [])
  const isJudged = slot.served_by === null && provider.models === undefined
  const misfit = row === null || !isJudged ? null : typeMisfit(row, slot.type, names)
  if (misfit !== null) report(slot, 'model', 'slot.config_error', misfit, { param: 'model.default', details: { model } })
}

function checkArgs (slot: NamedSlotConfig, provider: EngineProvider, report: Report): void {
  reportRefusal(slot, 'args', 'server.extra_args', report, () => extraArgsWords(slot, provider.flags))
  reportRefusal(slot, 'args', 'server.env', report, () => serverEnv(slot, provider.flags))
}

/** What a text of flags is refused for: a flag of the gateway's, an open quote. Whether it is refused. */
function reportRefusal (slot: NamedSlotConfig, rule: SlotRule, param: string, report: Report, look: () => unknown): boolean {
  try {
    look()
    return false
  } catch (error) {
    const [code, details] = isSvcError(error) ? [error.code as ErrorCode, error.details] : ['slot.config_error' as const, {}]
    report(slot, rule, code, messageOf(error), { param, details })
    return true
  }
}

function checkProfile (slot: NamedSlotConfig, provider: EngineProvider, context: SlotSetContext, report: Report): void {
  const device = context.device(slot)
  if (slot.profile === null || !provider.slotTypes.includes(slot.type)) return
  const profile = context.profiles.get(slot.profile)
  if (profile === undefined) {
    return report(slot, 'profile', 'profiles.not_found', `no such profile: '${slot.profile}'; \`svc profile list\` shows all profiles`, { param: 'profile', details: { profile: slot.profile } })
  }
  if (reportRefusal(slot, 'profile', 'profile', report, () => profileWords(profile, provider.flags))) return
  const misfit = profileMisfit(profile, device, slot.type, provider, context.providers)
  if (misfit === null) return
  report(slot, 'profile', 'slot.config_error', `profile '${profile.name}' does not suit slot '${slot.name}': ${misfit}; choose another profile or device, or set \`profile\` to null for the usual one`,
    { param: 'profile', details: { device, profile: profile.name, device_backend: gpuBackendOf(device), profile_backend: profile.backend } })
}

/** Values that are undefined belong to no group. */
function groupsOf<K> (slots: readonly NamedSlotConfig[], key: (slot: NamedSlotConfig) => K | undefined): NamedSlotConfig[][] {
  const groups = new Map<K, NamedSlotConfig[]>()
  for (const slot of slots) {
    const value = key(slot)
    if (value === undefined) continue
    const group = groups.get(value)
    if (group === undefined) groups.set(value, [slot])
    else group.push(slot)
  }
  return [...groups.values()]
}

function sameProcess (a: NamedSlotConfig, b: NamedSlotConfig): boolean {
  return a === b || a.served_by === b.name || b.served_by === a.name || (a.served_by !== null && a.served_by === b.served_by)
}
