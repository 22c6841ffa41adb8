import type { NamedStack } from '../../services/stack-catalog/ref.js'
import type { StackPlan } from './plan.js'
import { resolutionsOf } from './resolutions.js'
import type { CapabilityChangeView, SlotChangeView } from './schemas.js'
import type { StackServices } from './stack-api.js'

/** What a plan comes to, one sentence a line. Pure. */
export function summaryOf (plan: StackPlan, unloads: readonly string[]): string[] {
  const { creates, changes, profiles, capabilities, loads, accepts } = plan
  const lines = [
    ...profiles.map(name => `create profile ${name}`),
    ...changes.filter(({ changed }) => changed).map(change => slotLine(change, creates.includes(change.slot))),
    ...capabilities.filter(({ changed }) => changed).map(capabilityLine),
    ...loads.map(name => `load slot ${name}`),
    ...unloads.map(name => `unload slot ${name}`)
  ]
  if (lines.length > 0) return lines
  return [accepts ? 'keep changes made since it was applied: they are not part of the stack' : 'no change']
}

/** What is worth knowing before a stack is put into force. */
export function warningsOf (services: StackServices, stack: NamedStack, plan: StackPlan): string[] {
  const { refused, warnings, troubles, changes } = plan
  const missing = resolutionsOf(stack, services).filter(({ model_id: id, status }) => status !== 'present' && !id.startsWith('/'))
  const ids = missing.map(({ model_id: id }) => id)
  const lacksOnlyModel = (slot: string): boolean => ids.includes(changes.find(change => change.slot === slot)?.after_model ?? '')
  return [
    ...warnings,
    ...troubles.filter(({ slot, what }) => what !== 'model' || !lacksOnlyModel(slot)).map(({ slot, message }) => `slot ${slot} cannot start here: ${message}`),
    ...refused.map(({ target, error }) => `${target} is not changed: ${error}`),
    ...missing.map(({ model_id: id, status, hf_repo: repo, hf_filename: file }) => status === 'pullable'
      ? `model '${id}' is not on this host yet; pull it: svc model pull ${services.library.curated.some(model => model.id === id) ? id : `${repo}:${file}`}`
      : `model '${id}' is not on this host, and its source is unknown; register it`)
  ]
}

function slotLine ({ slot, before_model: before, after_model: after, fields }: SlotChangeView, isNew: boolean): string {
  if (isNew) return `create slot ${slot}${after === null ? '' : ` with model ${after}`}`
  const model = before === after ? [] : [`model ${before ?? 'none'} -> ${after ?? 'none'}`]
  const others = fields.filter(({ key }) => key !== 'model.default').map(({ key, before: was, after: is }) => `${key} ${wordOf(was)} -> ${wordOf(is)}`)
  return `change slot ${slot}: ${[...model, ...others].join(', ')}`
}

function capabilityLine ({ child, slot, after: { enabled, device, model } }: CapabilityChangeView): string {
  if (!enabled) return `switch ${child} off`
  return `${child} by slot ${slot}: ${[model, device].filter(part => part !== null).join(' on ') || 'with the default of its engine'}`
}

function wordOf (value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
