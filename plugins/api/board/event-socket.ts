import { Changes, defineWebSocket, type AnyRoute, type ServedSocket } from 'svc-gateway/plugin'
import type { Board } from '../../services/board/ref.js'
import type { BoardApi } from './board-call.js'
import { eventsQuerySchema } from './schemas.js'

const PER_FRAME = 200

/** `/api/board/events`: what happens on a board, without a hole from one socket to the next. */
export function eventSocket ({ board: service }: BoardApi): AnyRoute {
  return defineWebSocket({
    url: '/api/board/events',
    tag: 'Board',
    summary: 'Follow the events of a board',
    description: 'Frames are `{events: [{id, kind, task_id, board, at, json}], cursor}`, at most 200 events each, and one without events at the beginning. Pass the `cursor` of the last frame as `since` to resume after it, even across a restart of the gateway. `gap: true` means that events since then are no longer kept: reload the board. A board that is deleted closes the socket with 1011 and `board.not_found`.',
    schema: { querystring: eventsQuerySchema },
    handler: async ({ query }) => {
      const board = await service.open()
      const slug = board.slugOf(query.board)
      return socket => follow(board, slug, query.since, socket)
    }
  })
}

async function follow (board: Board, slug: string, since: number | undefined, socket: ServedSocket): Promise<void> {
  const { signal } = socket
  const changes = new Changes()
  // before the first look, so that nothing falls between the two
  let isNew = true
  const unfollow = board.follow(() => {
    isNew = true
    changes.wake()
  })
  let cursor = since ?? board.cursor
  try {
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      isNew = false
      // throws for one that was deleted in the meantime
      board.slugOf(slug)
      const { events, isGap } = board.events(slug, cursor, PER_FRAME)
      if (isGap) cursor = board.cursor
      else cursor = events.at(-1)?.id ?? cursor
      if (isGap || isFirst || events.length > 0) {
        await socket.send(JSON.stringify({ events: isGap ? [] : events, cursor, ...(isGap ? { gap: true } : {}) }))
      }
      if (events.length === PER_FRAME) continue
      // a socket that closes ends the loop
      if (!isNew) await changes.next(signal).catch(() => {})
    }
  } finally {
    unfollow()
  }
}
