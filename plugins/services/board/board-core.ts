import type { Database } from './database.js'
import type { EventLog } from './event-log.js'
import type { Board } from './ref.js'
import type { Runs } from './runs.js'
import type { Tasks } from './tasks.js'

/** What the work of agents, and of models, needs of the board. */
export interface BoardCore extends Pick<Board, 'follow' | 'orchestration' | 'task'> {
  readonly database: Database
  readonly tasks: Tasks
  readonly runs: Runs
  readonly log: EventLog
}
