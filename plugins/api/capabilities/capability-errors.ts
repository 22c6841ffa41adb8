import { messageOf, isSvcError, type Device, type MemoryFit, type SvcError } from 'svc-gateway/plugin'
import { selectionError, type CapabilityChild } from '../../services/capabilities/ref.js'
import { capabilityError } from './errors.js'

export function invalidSelection (child: CapabilityChild, reason: string, param?: string): SvcError {
  return selectionError('capability.invalid_selection', `${child}: ${reason}`, { details: { child }, ...(param === undefined ? {} : { param }) })
}

export function unknownModel (child: CapabilityChild, model: string): SvcError {
  return selectionError('capability.unknown_model', `'${model}' is not a model for ${child}; see GET /api/capabilities for those that are`,
    { param: 'model', details: { child, model } })
}

export function illegalPair (
  child: CapabilityChild, model: string,
  { device, provider }: { readonly device: Device | null, readonly provider: string | null }, legal: readonly Device[],
  reasons: readonly string[]
): SvcError {
  const where = [device, provider].filter(part => part !== null).join(' with ')
  const choice = legal.length === 0 ? 'no engine on this host can run it' : `it runs on ${legal.join(', ')}`
  return selectionError('capability.illegal_backend_model_pair', `${child}: model '${model}' does not run on ${where || 'this host'}${reasons.map(reason => `: ${reason}`).join('')}; ${choice}`,
    { param: device === null ? 'provider' : 'device', details: { child, model, device, provider, legal_backends: legal, reasons } })
}

export function illegalFit (
  child: CapabilityChild, model: string, { status, reasons }: MemoryFit, profile: string | null, family: string
): SvcError {
  return capabilityError('capability.illegal_model_fit', `${child}: model '${model}' is too large for this host: ${reasons.join('; ')}`,
    { param: 'model', details: { child, model, fit_status: status, fit_reasons: reasons, profile, runtime_family: family } })
}

/** The selection is in force and its engine is not. */
export function applyFailed (child: CapabilityChild, slot: string, error: unknown): SvcError {
  return capabilityError('capability.apply_failed', `the selection for ${child} is saved, but slot '${slot}' failed to apply it: ${messageOf(error)}`,
    { details: { child, slot, reason: isSvcError(error) ? error.code : 'system.internal' }, cause: error })
}
