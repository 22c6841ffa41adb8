import type { ActivityLog, RouteCall } from 'svc-gateway/plugin'
import { boardError, type Board, type BoardService } from '../../services/board/ref.js'

export interface BoardApi {
  readonly board: BoardService
  readonly activity: ActivityLog
}

type Asked = Pick<RouteCall, 'actor' | 'requestId'>

/** Does something to a board, with its row in the activity log. */
export async function audited<T> (
  { board, activity }: BoardApi, { actor, requestId }: Asked, action: string, target: string,
  work: (board: Board) => T | Promise<T>
): Promise<T> {
  const opened = await board.open()
  return activity.audited({ category: 'board', action: `board.${action}`, target, actor, request_id: requestId }, async () => work(opened))
}

/** The revision that a client has seen; null where it does not say, or says that any will do. */
export function revisionOf ({ request }: Pick<RouteCall, 'request'>): number | null {
  const header = request.headers['if-match']?.trim()
  if (header === undefined || header === '*') return null
  const [, digits] = /^(?:W\/)?"?(\d{1,15})"?$/.exec(header) ?? []
  if (digits === undefined) throw boardError('board.stale_write', 'If-Match is the ETag of a task: its revision in quotes')
  return Number(digits)
}

/** Says which revision the answer has. */
export function tagged<T extends { readonly revision: number }> ({ reply }: Pick<RouteCall, 'reply'>, task: T): T {
  void reply.header('etag', `"${task.revision}"`)
  return task
}
