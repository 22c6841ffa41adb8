import { wireTime } from '../wire/times.js'
import type { Operation } from './operation.js'

/** A row of the list. Both spellings of its names are always there. Pure. */
export function operationRow (operation: Operation): Record<string, unknown> {
  return {
    id: operation.id,
    task_type: operation.type,
    operation_id: operation.id,
    operation_type: operation.type,
    items_count: operation.itemsCount,
    document_id: operation.documentId,
    filename: operation.filename,
    mental_model_id: operation.mentalModelId,
    details: operation.details,
    created_at: wireTime(operation.createdAt),
    updated_at: wireTime(operation.updatedAt),
    status: operation.status,
    error_message: operation.error,
    retry_count: operation.retryCount,
    next_retry_at: wireTime(operation.nextRetryAt),
    progress: operation.progress
  }
}

/** One operation with its children; `null` is one that is not known, which the wire answers too. Pure. */
export function operationStatus (
  id: string, operation: Operation | null, children: readonly Operation[], payload: boolean
): Record<string, unknown> {
  return {
    operation_id: id,
    status: operation?.status ?? 'not_found',
    operation_type: operation?.type ?? null,
    id,
    task_type: operation?.type ?? null,
    mental_model_id: operation?.mentalModelId ?? null,
    created_at: wireTime(operation?.createdAt ?? null),
    updated_at: wireTime(operation?.updatedAt ?? null),
    completed_at: wireTime(operation?.completedAt ?? null),
    error_message: operation?.error ?? null,
    retry_count: operation?.retryCount ?? null,
    next_retry_at: wireTime(operation?.nextRetryAt ?? null),
    progress: operation?.progress ?? null,
    result_metadata: operation?.result ?? null,
    details: operation?.details ?? null,
    child_operations: children.length === 0 ? null : children.map(child => ({
      operation_id: child.id,
      status: child.status,
      sub_batch_index: child.subBatchIndex,
      items_count: child.itemsCount,
      error_message: child.error
    })),
    task_payload: payload ? operation?.payload ?? null : null
  }
}
