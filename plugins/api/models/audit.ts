import type { ActivityNote, RouteCall } from 'svc-gateway/plugin'
import type { ModelApi } from './model-api.js'

/** Writes down who did what to a model and how it ended. */
export function audited<T> (
  { activity }: Pick<ModelApi, 'activity'>, caller: Pick<RouteCall, 'actor' | 'requestId'>, action: string, target: string,
  work: (note: (learned: ActivityNote) => void) => Promise<T>
): Promise<T> {
  return activity.audited({ category: 'model', action: `model.${action}`, target, actor: caller.actor, request_id: caller.requestId }, work)
}
