import { svcError, type SvcError } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { HistoryEntry } from './history-entry.js'

const nodeErrorSchema = z.looseObject({
  class_type: z.string().default('?'),
  errors: z.array(z.looseObject({
    type: z.string(), message: z.string(), details: z.string().default(''),
    extra_info: z.looseObject({ input_name: z.string().optional(), received_value: z.unknown().optional() }).optional()
  }))
})
const refusalSchema = z.looseObject({
  error: z.union([z.string(), z.looseObject({ type: z.string(), message: z.string(), details: z.string().default('') })]).nullish(),
  /** An object; an empty list where it says nothing. */
  node_errors: z.union([z.record(z.string(), nodeErrorSchema), z.array(z.unknown()).transform(() => ({}))]).default({})
})

/** A graph that the engine does not take: which node, which input, why. */
export function promptRefused (json: unknown): SvcError {
  const parsed = refusalSchema.safeParse(json)
  if (!parsed.success) return svcError('dispatch.upstream_failed', 'the image engine refused the workflow without saying why')
  const { error, node_errors: nodes } = parsed.data
  const faults = Object.entries(nodes as Record<string, z.output<typeof nodeErrorSchema>>)
    .flatMap(([node, { class_type: type, errors }]) => errors.map(fault => ({ node, type, fault })))
  const missing = faults.find(({ type, fault }) => type === 'CheckpointLoaderSimple' && fault.type === 'value_not_in_list')
  if (missing !== undefined) return missingCheckpoint(missing.fault.extra_info?.received_value)
  const words = faults.map(({ node, type, fault }) => `node ${node} (${type}): ${fault.message}: ${fault.details}`)
  const reason = words.length > 0 ? words.join('; ') : errorWords(error)
  return svcError('dispatch.upstream_failed', `the image engine refused the workflow: ${reason}`,
    { details: { node_errors: nodes, error: typeof error === 'object' ? error?.type : error } })
}

/** A run that ended without its images. */
export function runFailed (entry: HistoryEntry): SvcError {
  const messages = entry.status?.messages ?? []
  if (messages.some(([type]) => type === 'execution_interrupted')) {
    return svcError('dispatch.upstream_failed', 'the image job was interrupted at the engine', { details: { interrupted: true } })
  }
  const failure = messages.find(([type]) => type === 'execution_error')?.[1] as Record<string, unknown> | undefined
  if (failure === undefined) return svcError('dispatch.upstream_failed', 'the image engine ended the job without images')
  const { exception_message: message, exception_type: exception, node_type: type, node_id: node } = failure
  return svcError('dispatch.upstream_failed', `the image engine failed in ${String(type)}: ${firstLine(String(message))}`,
    { details: { node_id: node, node_type: type, exception_type: exception } })
}

/** The engine's queue was emptied, or the engine was started anew. */
export function runLost (): SvcError {
  return svcError('dispatch.upstream_failed', 'the image job is no longer in the engine\'s queue: it was removed there')
}

export function runSilent (seconds: number): SvcError {
  return svcError('dispatch.upstream_timeout', `the image engine made no progress for ${seconds} s; the job was cancelled`)
}

export function callTooLong (seconds: number): SvcError {
  return svcError('dispatch.upstream_timeout', `the image engine did not answer within ${seconds} s`)
}

/** Below it the engine has advice for the users of its own page. Pure. */
function firstLine (message: string): string {
  return message.trim().split('\n', 1)[0]!.trim()
}

function missingCheckpoint (file: unknown): SvcError {
  return svcError('dispatch.upstream_failed',
    `the image engine does not have the file ${String(file)}; fetch it with POST /api/comfyui/models/fetch or put it into models/checkpoints of its data folder`,
    { details: { missing_file: file } })
}

function errorWords (error: z.output<typeof refusalSchema>['error']): string {
  if (typeof error === 'string') return error
  if (error === null || error === undefined) return 'no reason given'
  return error.details === '' ? error.message : `${error.message}: ${error.details}`
}
