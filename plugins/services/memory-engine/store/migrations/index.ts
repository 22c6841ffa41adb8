import { memories } from './0001-memories.js'
import type { MemoryMigration } from './migrate.js'

export const migrations: readonly MemoryMigration[] = [memories]
