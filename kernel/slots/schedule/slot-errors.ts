import { SvcError, svcError, type EngineProvider, type SvcErrorOptions } from '../../contract/index.js'
import { replicaPlace, replicaWords } from './replica-names.js'
import type { Refusal, SlotEffect } from './scheduled-slot.js'

export function slotNotFound (name: string): SvcError {
  return svcError('slot.not_found', `no such slot: '${name}'; see \`svc slot list\``, { details: { slot: name } })
}

/**
 * Why a slot that runs in another one's engine cannot be used, and what to do.
 * @param provider of the anchor, which may have a code of its own for it, and know where a child is switched on
 */
export function unservedError (
  { slot, anchor, enabled }: { readonly slot: string, readonly anchor: string, readonly enabled: boolean },
  provider: Pick<EngineProvider, 'unserved'> | null | undefined, options: SvcErrorOptions
): SvcError {
  const kind = provider?.unserved
  const message = `slot '${slot}' runs in the engine of slot '${anchor}' ` + (enabled
    ? `and that is not up or was started without it; load it first: \`svc slot restart ${anchor}\``
    : `and is switched off there; ${kind?.switchOn ?? 'switch it on in the file of that slot'}, then \`svc slot restart ${anchor}\``)
  // what is switched off stays so
  const healing = enabled ? {} : { heals: false }
  if (kind === undefined) return svcError('slot.unserved', message, { ...healing, ...options })
  return new SvcError(kind.code, kind.status, message, { heals: kind.heals === true, ...healing, ...options })
}

/**
 * The refusal of a waiter in the words of the error table.
 * @param slot the slot, or one of its replicas
 */
export function refusalError (slot: string, refusal: Refusal): SvcError {
  const failed = refusal.code === 'slot.load_failed' || refusal.code === 'model.not_found'
  // a reason that begins with the slot is a sentence already
  const words = `slot ${replicaWords(slot)} `
  const lead = refusal.message.startsWith(words) ? '' : `${words}${failed ? 'could not be loaded: ' : ''}`
  return svcError(refusal.code, `${lead}${refusal.message}`, {
    ...(refusal.code === 'model.not_found' ? { param: 'model' } : {}),
    details: {
      slot: replicaPlace(slot).slot,
      reason: refusal.cause,
      ...(refusal.retryAfterS === null ? {} : { retry_after_s: refusal.retryAfterS }),
      ...(refusal.logTail.length === 0 ? {} : { log_tail: refusal.logTail })
    }
  })
}

/** What a request hears whose engine is taken away while it runs. */
export function revokedError (slot: string, why: Extract<SlotEffect, { type: 'revoke' }>['why'], message: string): SvcError {
  const details = { slot: replicaPlace(slot).slot }
  if (why === 'lost') return svcError('dispatch.upstream_failed', `slot ${replicaWords(slot)} failed: ${message}`, { details })
  return svcError('slot.stopped', `slot ${replicaWords(slot)} was ${why} while the request ran`, { details: { ...details, reason: why, retry_after_s: 1 } })
}
