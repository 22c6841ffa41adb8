import type { Random } from '../kernel/slots/random.js'
import type { VerbCaller } from './verb-caller.js'
import type { VerbWorld } from './verb-world.js'

/** One step of a client; ends when all of its answers are there. */
export type VerbArea = (world: VerbWorld, caller: VerbCaller, random: Random) => Promise<unknown>

const VERBS = ['start', 'stop', 'restart', 'enable', 'disable'] as const
const STATUSES = ['triage', 'todo', 'ready', 'blocked', 'review', 'done', 'archived', 'running', 'scheduled'] as const
let serial = 0

const services: VerbArea = async (world, caller, random) => {
  const id = random.pick(['openwebui', 'openwebui', 'hermes', 'hindsight', 'comfyui', 'nobody'])
  const dice = random.int(20)
  if (dice < 3) return await caller.call(world, 'GET', random.pick(['/api/services', '/api/services/health', '/api/services/mdns', '/api/install/services']))
  if (dice < 4) return await caller.call(world, 'POST', '/api/services/mdns', { body: { advertise: random.chance(0.5) } })
  if (dice < 5) return await caller.call(world, 'POST', `/api/services/${id}/install`, { body: random.chance(0.2) ? {} : { form: 'container' } })
  if (dice < 6) return await caller.call(world, 'DELETE', `/api/services/${id}/install?data=${random.chance(0.5)}`)
  if (dice < 7) return await caller.call(world, 'GET', `/api/logs?unit=${random.pick(['svc-openwebui.service', 'hindsight-api.service'])}&n=5`)
  const leaves = random.chance(0.1)
  const { status, requestId, json } = await caller.call(world, 'POST', `/api/services/${id}/action`, { body: { action: random.pick(VERBS) }, leaves })
  if (status !== 200) return
  const rows = world.activity.list({ kind: 'action', category: 'services', limit: 500 }).filter(({ request_id: request }) => request === requestId)
  const { ok } = json as { ok: boolean }
  const after = rows[0]?.after as { ok?: boolean } | undefined
  if (rows.length !== 1 || after?.ok !== ok) caller.broken(`an action that answered ok=${ok} has ${rows.length} audit rows, ${JSON.stringify(after)}`)
}

const agents: VerbArea = async (world, caller, random) => {
  const name = random.pick(['asks', 'serves', 'serves', 'hermes', 'codex'])
  const persona = `/api/agents/${random.pick(['hermes', 'asks'])}/personas/${random.pick(['reviewer', 'writer', 'default'])}`
  const dice = random.int(24)
  const leaves = random.chance(0.1)
  switch (dice) {
    case 0: return await caller.call(world, 'POST', '/api/agents/install', { body: { name: random.pick(['asks', 'serves']), switch: random.chance(0.5) }, leaves })
    case 1: return await caller.call(world, 'POST', '/api/agents/install', { body: { name, dry_run: true } })
    case 2: return await caller.call(world, 'DELETE', `/api/agents/${name}`, { leaves })
    case 3: return await caller.call(world, 'POST', `/api/agents/${name}/upgrade`, { body: random.chance(0.5) ? {} : { to: '3.0.0' } })
    case 4: return await caller.call(world, 'POST', `/api/agents/${name}/reprovision`, { body: random.chance(0.5) ? {} : { phase: 'wiring' } })
    case 5: return await caller.call(world, 'POST', `/api/agents/${name}/bootstrap`, { body: { dry_run: true } })
    case 6: case 7: return await caller.call(world, 'POST', `/api/agents/${name}/restart`, { leaves })
    case 8: return await caller.call(world, 'GET', `/api/agents/${name}/log`)
    case 9: return await caller.call(world, 'GET', `/api/agents/${name}`)
    case 10: return await caller.call(world, 'GET', `/api/agents/${name}/activity`)
    case 11: case 12: return await caller.call(world, 'PUT', persona, { body: { display_name: `Number ${serial++}`, tone: random.pick(['formal', 'concise', 'playful', 'odd']) } })
    case 13: return await caller.call(world, 'DELETE', persona)
    case 14: return await caller.call(world, 'POST', `${persona}/activate`, { body: {} })
    case 15: return await caller.call(world, 'PUT', `${persona}/budget`, { body: { daily_usd: random.int(5), hard_cap: random.chance(0.5) } })
    case 16: case 17: return await charges(world, caller, random, persona)
    case 18: return await caller.call(world, 'POST', `${persona}/budget/check`, { body: { estimated_cost_usd: random.next() } })
    case 19: return await caller.call(world, 'GET', `${persona}/budget/ledger`)
    case 20: return await caller.call(world, 'DELETE', `${persona}/budget`)
    case 21: return await caller.call(world, 'PATCH', '/api/agents/prices', { body: { prices: { [`ring/m${random.int(3)}`]: { input_usd_per_mtok: random.int(9) } } } })
    case 22: return await caller.call(world, 'GET', `${persona}/budget`)
    default: return await caller.call(world, 'GET', '/api/agents')
  }
}

/** The same charge from two clients at once is one entry. */
async function charges (world: VerbWorld, caller: VerbCaller, random: Random, persona: string): Promise<void> {
  const body = { surface: 'search', model: 'web', cost_usd: random.int(100) / 1000, request_id: `soak-${serial++}` }
  await Promise.all([1, 2].map(() => caller.call(world, 'POST', `${persona}/budget/charge`, { body })))
}

const board: VerbArea = async (world, caller, random) => {
  const id = await someTask(world, caller, random)
  const assignee = random.pick(['painter', 'ann', null])
  const at = `/api/board/tasks/${id}`
  switch (random.int(22)) {
    case 0: case 1: case 2: return await caller.call(world, 'POST', '/api/board/tasks', { body: { title: `Task ${serial++}`, assignee, status: random.pick(['triage', 'ready', 'ready', 'todo']) } })
    case 3: case 4: case 5: return await twoPatches(world, caller, random, at)
    case 6: return await caller.call(world, 'PATCH', at, { body: { status: random.pick(STATUSES), assignee } })
    case 7: return await caller.call(world, 'POST', '/api/board/tasks/bulk', { body: { ids: [id, await someTask(world, caller, random)], status: random.pick(STATUSES) } })
    case 8: case 9: return await caller.call(world, 'POST', '/api/board/links', { body: { parent_id: id, child_id: await someTask(world, caller, random) } })
    case 10: return await caller.call(world, 'DELETE', `/api/board/links?parent_id=${id}&child_id=${await someTask(world, caller, random)}`)
    case 11: return await caller.call(world, 'POST', `${at}/comments`, { body: { body: 'a word' } })
    case 12: return await caller.call(world, 'POST', `${at}/reclaim`)
    case 13: return await caller.call(world, 'POST', `${at}/reassign`, { body: { assignee } })
    case 14: return await caller.call(world, 'DELETE', at)
    case 15: return await caller.call(world, 'POST', '/api/board/dispatch', { leaves: random.chance(0.2) })
    case 16: return await caller.call(world, 'POST', '/api/board/boards', { body: { slug: random.pick(['garden', 'house']), name: 'A board' } })
    case 17: return await caller.call(world, 'POST', `/api/board/boards/${random.pick(['garden', 'house', 'default'])}/switch`)
    case 18: return await caller.call(world, 'DELETE', `/api/board/boards/${random.pick(['garden', 'house', 'default'])}`)
    case 19: return await caller.call(world, 'POST', `${at}/${random.pick(['specify', 'decompose', 'undo'])}`)
    case 20: return await caller.call(world, 'GET', random.pick(['/api/board/stats', '/api/board/diagnostics', '/api/board/workers/active', '/api/board/boards', '/api/board/assignees', `${at}/log`]))
    default: return await caller.call(world, 'PUT', '/api/board/orchestration', { body: { default_assignee: assignee, auto_promote_children: random.chance(0.5) } })
  }
}

async function someTask (world: VerbWorld, caller: VerbCaller, random: Random): Promise<string> {
  const { json } = await caller.call(world, 'GET', '/api/board')
  const tasks = Object.values((json as { lanes?: Record<string, Array<{ id: string }>> }).lanes ?? {}).flat()
  return tasks.length === 0 || random.chance(0.05) ? 't_00000000' : random.pick(tasks).id
}

/** Two that read the same revision: one of them at most is right. */
async function twoPatches (world: VerbWorld, caller: VerbCaller, random: Random, at: string): Promise<void> {
  const { status, json } = await caller.call(world, 'GET', at)
  if (status !== 200) return
  const headers = { 'if-match': `"${(json as { revision: number }).revision}"` }
  const answers = await Promise.all([1, 2].map(n => caller.call(world, 'PATCH', at, { headers, body: { title: `Changed ${serial++} by ${n}`, priority: random.int(9) } })))
  if (answers.filter(answer => answer.status === 200).length > 1) caller.broken(`two changes of one revision of ${at} were taken`)
}

const approvals: VerbArea = async (world, caller, random) => {
  if (random.chance(0.3)) return await caller.call(world, 'GET', random.pick(['/api/agent/approvals', '/api/agent/approvals?state=executed', '/api/agent/approvals/nothing']))
  const key = `k${serial++}`
  const outcome = await world.tools.call('admin', 'soak_gated', { key }, { agent: 'soak', actor: 'mcp:soak', signal: new AbortController().signal })
  if (outcome.kind !== 'pending') {
    if (outcome.kind !== 'failed') caller.broken(`a gated call was not held: ${JSON.stringify(outcome)}`)
    return
  }
  // some wait until the end
  if (random.chance(0.1)) return
  const at = `/api/agent/approvals/${outcome.approvalId}`
  const verbs = Array.from({ length: 1 + random.int(3) }, () => random.pick(['approve', 'approve', 'deny']))
  const answers = await Promise.all(verbs.map(async verb => ({ verb, ...await caller.call(world, 'POST', `${at}/${verb}`) })))
  const taken = new Set(answers.filter(({ status }) => status >= 200 && status < 300).map(({ verb }) => verb))
  if (taken.size !== 1) caller.broken(`${verbs.join(' and ')} of one approval: ${answers.map(({ verb, status, code }) => `${verb} ${status} ${code}`).join(', ')}`)
  if (taken.has('approve')) world.effects.approved(key)
}

const updates: VerbArea = async (world, caller, random) => {
  const dice = random.int(6)
  if (dice === 0) return await caller.call(world, 'PUT', '/api/updates/channel', { body: { channel: random.pick(['stable', 'nightly']) } })
  if (dice === 1) return await caller.call(world, 'POST', random.pick(['/api/updates/apply', '/api/updates/rollback']), { body: {} })
  return await caller.call(world, 'GET', random.pick(['/api/updates/check', '/api/updates/state', '/api/updates/channel', '/api/updates/status/nothing']))
}

export const areas: readonly VerbArea[] = [services, services, agents, agents, board, board, approvals, updates]
