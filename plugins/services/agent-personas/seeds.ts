import type { Persona } from './ref.js'

type Seed = Pick<Persona, 'display_name' | 'summary' | 'memory_namespace' | 'preferred_model'> & {
  readonly auto: readonly string[]
  readonly ask: readonly string[]
}

const READS = ['memory.read.*', 'search.*', 'slot.read.*', 'svc_admin.read.*']

/** What every agent has from the start; its first persona bears its own name. */
const seeds: ReadonlyArray<(agent: string) => readonly [id: string, seed: Seed]> = [
  agent => [agent, {
    display_name: agent,
    summary: 'General assistant; asks before it changes anything',
    memory_namespace: `private:${agent}`,
    preferred_model: '',
    auto: READS,
    ask: ['files.*', 'shell.*', 'admin.*', 'svc_admin.write.*']
  }],
  agent => ['coder', {
    display_name: 'Coder',
    summary: 'Reads code and runs harmless commands without asking; asks before it writes',
    memory_namespace: `private:${agent}-coder`,
    preferred_model: '',
    auto: [...READS, 'files.read.*', 'shell.read.*', 'kanban.read.*'],
    ask: ['files.write.*', 'shell.write.*', 'admin.*', 'svc_admin.write.*', 'kanban.write.*']
  }],
  () => ['svc-brain', {
    display_name: 'svc brain',
    summary: 'Watches this gateway and its board, and proposes what to do',
    memory_namespace: 'private:svc-brain',
    preferred_model: 'svc/brain',
    auto: [...READS, 'kanban.read.*', 'bench.read.*'],
    ask: ['files.*', 'shell.*', 'admin.*', 'slot.write.*', 'svc_admin.write.*', 'kanban.write.*']
  }]
]

/** The built-in personas of an agent by id, the one that is active at first in front. */
export function seedsOf (agent: string): ReadonlyMap<string, Persona> {
  return new Map(seeds.map(make => {
    const [id, { auto, ask, ...about }] = make(agent)
    const persona: Persona = {
      ...about,
      id,
      tone: 'neutral',
      system_prompt: '',
      tools_allowed: ['*'],
      preferred_upstream: 'svc',
      approval: { default_policy: 'ask', auto_approve: auto, require_approval: ask }
    }
    return [id, persona]
  }))
}
