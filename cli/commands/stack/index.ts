import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addStackApply } from './apply.js'
import { addStackDelete, addStackSnapshot } from './change.js'
import { addStackExport, addStackImport } from './envelope.js'
import { addStackList, addStackShow } from './list.js'

export function addStackCommands (program: Command, cli: Cli): void {
  const stack = program.command('stack').description('manage stacks: bundles of slots, models and capabilities')
  addStackList(stack, cli)
  addStackShow(stack, cli)
  addStackApply(stack, cli)
  addStackSnapshot(stack, cli)
  addStackExport(stack, cli)
  addStackImport(stack, cli)
  addStackDelete(stack, cli)
}
