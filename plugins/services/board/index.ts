import { join } from 'node:path'
import { core, definePlugin } from 'svc-gateway/plugin'
import { BoardData } from './board-data.js'
import { openDatabase } from './database.js'
import { boardError } from './errors.js'
import { boardRef } from './ref.js'

/** The board: tasks for people and agents, in a database of its own. See README.md. */
export default definePlugin({
  name: 'board',
  kind: 'service',
  apiVersion: 1,
  errors: boardError,
  requires: { clock: core.clock },
  provides: [boardRef],
  register (ctx) {
    const { clock } = ctx.services
    const open = async (): Promise<BoardData> =>
      new BoardData(await openDatabase(join(ctx.stateDir, 'board.db')), () => Math.floor(clock.now()) / 1000)
    let opened: Promise<BoardData> | null = null
    ctx.provide(boardRef, {
      // one that could not be opened is tried again with the next call
      open: () => opened ??= open().catch((error: unknown) => {
        opened = null
        throw error
      })
    })
    ctx.onStop(async () => {
      const board = await opened?.catch(() => null)
      board?.database.close()
    })
  }
})
