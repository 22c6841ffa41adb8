import { memories } from './0001-memories.js'
import { operations } from './0020-operations.js'
import { models } from './0021-models.js'
import { extras } from './0023-extras.js'
import type { MemoryMigration } from './migrate.js'

export const migrations: readonly MemoryMigration[] = [memories, operations, models, extras]
