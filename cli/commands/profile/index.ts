import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addProfileCreate, addProfileDelete, addProfileEdit } from './change.js'
import { addProfileExport, addProfileImport } from './envelope.js'
import { addProfileList, addProfileShow } from './list.js'

export function addProfileCommands (program: Command, cli: Cli): void {
  const profile = program.command('profile').description('manage profiles: images with tuned flags that slots run with')
  addProfileList(profile, cli)
  addProfileShow(profile, cli)
  addProfileCreate(profile, cli)
  addProfileEdit(profile, cli)
  addProfileDelete(profile, cli)
  addProfileExport(profile, cli)
  addProfileImport(profile, cli)
}
