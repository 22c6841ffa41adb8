import { svcError, type SlotProblem, type SvcError } from 'svc-gateway/plugin'
import { stacksError } from './errors.js'
import type { SlotTrouble } from './schemas.js'

export function stackNotFound (slug: string): SvcError {
  return stacksError('stacks.not_found', `no such stack: '${slug}'; see GET /api/stacks`, { param: 'slug', details: { slug } })
}

export function stackExists (slug: string): SvcError {
  return stacksError('stacks.exists', `stack '${slug}' already exists; choose another slug, or replace that stack with PUT`,
    { param: 'slug', details: { slug } })
}

export function seedStack (slug: string): SvcError {
  return stacksError('stacks.seed_immutable', `stack '${slug}' is built in and cannot be changed; save it under another slug`,
    { param: 'slug', details: { slug } })
}

export function invalidSlug (slug: string): SvcError {
  return stacksError('stacks.invalid_name',
    'a slug must be lowercase letters, digits, `-` or `_`, start with a letter or digit, and have at most 32 characters',
    { param: 'slug', details: { slug } })
}

export function badEnvelope (reason: string, details: Readonly<Record<string, unknown>> = {}): SvcError {
  return stacksError('stacks.bad_envelope', `this stack cannot be imported: ${reason}`, { param: 'envelope', details })
}

export function envelopeTooNew (got: number, supported: number): SvcError {
  return stacksError('stacks.envelope_too_new',
    `this stack has format ${got}, and this release knows formats up to ${supported}; update the gateway`,
    { param: 'envelope', details: { got, supported } })
}

export function importWithoutSlug (): SvcError {
  return stacksError('stacks.import_no_slug', 'an import needs a `slug` for the stack; a dry run does not', { param: 'slug' })
}

export function wouldBreak (slug: string, troubles: readonly SlotTrouble[]): SvcError {
  const [{ slot, message } = { slot: '', message: '' }] = troubles
  const others = new Set(troubles.map(trouble => trouble.slot)).size - 1
  return stacksError('stacks.would_break',
    `stack '${slug}' would leave slot '${slot}' unable to start: ${message}${others === 0 ? '' : `; and ${others} more`}; nothing was changed; \`force\` (\`--force\` of \`svc stack apply\`) applies it anyway`,
    { details: { slug, troubles } })
}

export function contradictoryRow (path: string, { message, code, details }: SlotProblem): SvcError {
  return svcError(code, `${path}: ${message}`, { param: path, details: { ...details, fields: [{ path, message }] } })
}

export function superseded (slug: string): SvcError {
  return stacksError('stacks.superseded', `stack '${slug}' was applied in the meantime, and takes effect instead`, { details: { slug } })
}
