import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addMcpCatalog } from './catalog.js'
import { addMcpInstall, addMcpRestart, addMcpUninstall } from './change.js'
import { addMcpConnect } from './connect.js'
import { addMcpList, addMcpLogs, addMcpStatus } from './list.js'

export function addMcpCommands (program: Command, cli: Cli): void {
  const mcp = program.command('mcp').description('manage tool servers, and connect programs to them')
  addMcpList(mcp, cli)
  addMcpStatus(mcp, cli)
  addMcpInstall(mcp, cli)
  addMcpUninstall(mcp, cli)
  addMcpRestart(mcp, cli)
  addMcpLogs(mcp, cli)
  addMcpCatalog(mcp, cli)
  addMcpConnect(mcp, cli)
}
