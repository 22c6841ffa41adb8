import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addApprovalsDecide } from './decide.js'
import { addApprovalsList } from './list.js'
import { addPersonaCommands } from './personas.js'
import { addApprovalsWatch } from './watch.js'

export function addAgentCommands (program: Command, cli: Cli): void {
  const agent = program.command('agent').description('manage agents: who they are, and calls that wait for you')
  const approvals = agent.command('approvals').description('calls of agents that wait for you')
  addApprovalsList(approvals, cli)
  addApprovalsDecide(approvals, cli)
  addApprovalsWatch(approvals, cli)
  addPersonaCommands(agent, cli)
}
