import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addModelAssign } from './assign.js'
import { addModelCatalog } from './catalog.js'
import { addModelFiles } from './files.js'
import { addModelList } from './list.js'
import { addModelPull } from './pull.js'
import { addModelRegister } from './register.js'
import { addModelRm } from './rm.js'
import { addModelScan } from './scan.js'
import { addModelSearch } from './search.js'
import { addModelShow } from './show.js'

export function addModelCommands (program: Command, cli: Cli): void {
  const model = program.command('model').description('manage models: files that slots load')
  addModelList(model, cli)
  addModelShow(model, cli)
  addModelCatalog(model, cli)
  addModelSearch(model, cli)
  addModelFiles(model, cli)
  addModelPull(model, cli)
  addModelRegister(model, cli)
  addModelScan(model, cli)
  addModelAssign(model, cli)
  addModelRm(model, cli)
}
