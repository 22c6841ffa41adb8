import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addServiceInstall, addServiceUninstall } from './install.js'
import { addServiceList, addServiceLogs } from './list.js'
import { addServiceVerbs } from './verbs.js'

export function addServiceCommands (program: Command, cli: Cli): void {
  const service = program.command('service').description('manage services: programs beside the gateway, and the gateway as one itself')
  addServiceList(service, cli)
  addServiceVerbs(service, cli)
  addServiceLogs(service, cli)
  addServiceInstall(service, cli)
  addServiceUninstall(service, cli)
}
