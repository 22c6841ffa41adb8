/** What a template is tried on. */
export interface Sample {
  readonly what: string
  /** `must` render; `may` refuse with raise_exception, which is a warning; `extra` is not expected of every template. */
  readonly need: 'must' | 'may' | 'extra'
  readonly input: Readonly<Record<string, unknown>>
  /** Text that the result has to hold. */
  readonly holds: readonly string[]
}

const tokens = { bos_token: '<s>', eos_token: '</s>', pad_token: '<pad>', unk_token: '<unk>' }
const opening = { role: 'user', content: 'How many moons has Mars?' }
const answer = { role: 'assistant', content: 'Two: Phobos and Deimos.' }
const followUp = { role: 'user', content: 'Which one is closer?' }
const system = { role: 'system', content: 'You answer in one sentence.' }
const call = { id: 'call00001', type: 'function', function: { name: 'orbit_of', arguments: { moon: 'Phobos' } } }
const tool = {
  type: 'function',
  function: {
    name: 'orbit_of',
    description: 'Distance of a moon',
    parameters: { type: 'object', properties: { moon: { type: 'string', description: 'Name' } }, required: ['moon'] }
  }
}
const talk = [opening.content, answer.content, followUp.content]

export const samples: readonly Sample[] = [
  {
    what: 'a conversation',
    need: 'must',
    input: { ...tokens, messages: [opening, answer, followUp], add_generation_prompt: true },
    holds: talk
  },
  {
    what: 'a finished conversation',
    need: 'must',
    input: { ...tokens, messages: [opening, answer], add_generation_prompt: false },
    holds: talk.slice(0, 2)
  },
  {
    what: 'a conversation with a system prompt',
    need: 'may',
    input: { ...tokens, messages: [system, opening, answer, followUp], add_generation_prompt: true },
    holds: [system.content, ...talk]
  },
  {
    what: 'a conversation with tools',
    need: 'extra',
    input: {
      ...tokens,
      tools: [tool],
      messages: [
        opening, { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', name: 'orbit_of', tool_call_id: 'call00001', content: '{"km":9376}' }
      ],
      add_generation_prompt: true
    },
    holds: ['orbit_of', '9376']
  }
]
