import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { addApprovalsDecide } from './decide.js'
import { addApprovalsList } from './list.js'
import { addBudgetCommands } from './budget.js'
import { addAgentPeers } from './peers.js'
import { addPersonaCommands } from './personas.js'
import { addPriceCommands } from './prices.js'
import { addApprovalsWatch } from './watch.js'
import { addAgentConnect } from './connect.js'
import { addAgentList } from './agents.js'
import { addAgentLifecycle } from './lifecycle.js'
import { addAgentRun } from './run.js'

export function addAgentCommands (program: Command, cli: Cli): void {
  const agent = program.command('agent').description('run agents on this gateway, and manage their personas and permissions')
  addAgentList(agent, cli)
  addAgentRun(agent, cli)
  addAgentConnect(agent, cli)
  addAgentLifecycle(agent, cli)
  addAgentPeers(agent, cli)
  const approvals = agent.command('approvals').description('list, approve and deny pending calls of agents')
  addApprovalsList(approvals, cli)
  addApprovalsDecide(approvals, cli)
  addApprovalsWatch(approvals, cli)
  addPersonaCommands(agent, cli)
  addBudgetCommands(agent, cli)
  addPriceCommands(agent, cli)
}
