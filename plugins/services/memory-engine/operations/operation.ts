import { WireError } from '../wire/error.js'

export const operationStatuses = ['pending', 'processing', 'completed', 'failed', 'cancelled'] as const
export type OperationStatus = typeof operationStatuses[number]

export const operationTypes = [
  'batch_retain', 'retain', 'file_convert_retain', 'consolidation', 'graph_maintenance', 'refresh_mental_model', 'export_documents',
  'export_bank', 'clone_bank', 'import_documents', 'import_bank', 'embedding'
] as const
export type OperationType = typeof operationTypes[number]

export interface OperationProgress {
  readonly stage: string
  /** ISO time */
  readonly at: string
  readonly processed: number | null
  readonly total: number | null
  readonly detail: Readonly<Record<string, number>> | null
}

/** A piece of background work. It outlives the process: what ran when the gateway was killed runs again. Times in epoch ms. */
export interface Operation {
  readonly id: string
  readonly bankId: string
  readonly type: OperationType
  readonly status: OperationStatus
  readonly parentId: string | null
  /** From 1, in its parent. */
  readonly subBatchIndex: number | null
  readonly itemsCount: number
  readonly documentId: string | null
  readonly filename: string | null
  readonly mentalModelId: string | null
  /** What the work needs; gone when it is completed, so that a deleted text is in no forgotten row. */
  readonly payload: unknown
  readonly result: Readonly<Record<string, unknown>>
  readonly details: Readonly<Record<string, unknown>> | null
  readonly error: string | null
  readonly retryCount: number
  readonly nextRetryAt: number | null
  readonly progress: OperationProgress | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly completedAt: number | null
}

/** What the payload of an operation has once it is being committed: it is brought to its end then, over a restart too. */
export interface Held {
  readonly held: unknown
}

export function isHeld ({ payload }: Pick<Operation, 'payload'>): boolean {
  return (payload as Partial<Held> | null)?.held !== undefined
}

/** A failure that the next try would meet again. */
export class PermanentFailure extends Error {
  /** For the operation's `details`. */
  readonly details: Readonly<Record<string, unknown>> | null
  /** What is written with the operation's end; null for nothing. */
  readonly write: (() => void) | null

  constructor (message: string, details: Readonly<Record<string, unknown>> | null = null, write: (() => void) | null = null) {
    super(message)
    this.name = 'PermanentFailure'
    this.details = details
    this.write = write
  }
}

export const MAX_RETRIES = 3
const FIRST_PAUSE_MS = 5_000
const PAUSE_FACTOR = 6

/** The pause before the n-th new try, from 1: 5 s, 30 s, 3 min. Pure. */
export function retryPauseMs (retry: number): number {
  return FIRST_PAUSE_MS * PAUSE_FACTOR ** (retry - 1)
}

/** Whether the next try would meet this failure again. Pure. */
export function isFinal (error: unknown): boolean {
  return error instanceof PermanentFailure || error instanceof WireError
}

/** What a failed try leads to: the number of the next try, or null for the end. Pure. */
export function retryAfter (failed: Pick<Operation, 'retryCount'>, error: unknown): number | null {
  if (isFinal(error) || failed.retryCount >= MAX_RETRIES) return null
  return failed.retryCount + 1
}

/** The status of a parent by that of its children, which it has at least one of. Pure. */
export function parentStatus (children: readonly OperationStatus[]): OperationStatus {
  if (children.includes('processing')) return 'processing'
  if (children.includes('pending')) return children.every(status => status === 'pending') ? 'pending' : 'processing'
  if (children.includes('failed')) return 'failed'
  return children.every(status => status === 'cancelled') ? 'cancelled' : 'completed'
}

export const laneKinds = ['write', 'model', 'embed'] as const
export type LaneKind = typeof laneKinds[number]

const kinds: Readonly<Partial<Record<OperationType, LaneKind>>> = {
  consolidation: 'model', graph_maintenance: 'model', refresh_mental_model: 'model', embedding: 'embed'
}

export function laneKindOf (type: OperationType): LaneKind {
  return kinds[type] ?? 'write'
}

/** Work on one bank that writes is done in turns; what waits for a model does not hold up the rest. Pure. */
export function laneOf ({ bankId, type }: Pick<Operation, 'bankId' | 'type'>): string {
  return `${laneKindOf(type)} ${bankId}`
}
