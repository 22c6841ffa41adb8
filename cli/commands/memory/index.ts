import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addMemoryGraph } from './graph.js'
import { addMemoryMigrate } from './migrate.js'
import { addMemoryBanks, addMemoryNotes } from './notes.js'
import { addMemoryState } from './state.js'
import { addMemoryTransfer } from './transfer.js'

export function addMemoryCommands (program: Command, cli: Cli): void {
  const memory = program.command('memory').description('manage the memory of agents and chats')
  addMemoryState(memory, cli)
  addMemoryBanks(memory, cli)
  addMemoryNotes(memory, cli)
  addMemoryTransfer(memory, cli)
  addMemoryGraph(memory, cli)
  addMemoryMigrate(memory, cli)
}
