import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addSlotCreate } from './create.js'
import { addSlotDelete } from './delete.js'
import { addSlotEdit } from './edit.js'
import { addSlotVerbs } from './lifecycle.js'
import { addSlotList } from './list.js'
import { addSlotLogs } from './logs.js'
import { addSlotShow, addSlotStatus } from './show.js'
import { addSlotSwap } from './swap.js'

export function addSlotCommands (program: Command, cli: Cli): void {
  const slot = program.command('slot').description('manage slots: engines that the gateway runs')
  addSlotList(slot, cli)
  addSlotStatus(slot, cli)
  addSlotShow(slot, cli)
  addSlotCreate(slot, cli)
  addSlotEdit(slot, cli)
  addSlotVerbs(slot, cli)
  addSlotSwap(slot, cli)
  addSlotDelete(slot, cli)
  addSlotLogs(slot, cli)
}
