/** What a chat template makes of calls and their results, found out by rendering some. */
export interface TemplateTraits {
  /** It puts the tools of a request into the prompt. */
  readonly tools: boolean
  /** It writes calls of earlier turns, with arguments as an object or as the text that the wire has; null: not at all. */
  readonly calls: 'object' | 'text' | null
  /** It takes ids of calls of nine letters or digits alone. */
  readonly nineLetterIds: boolean
  /** It writes messages of the role `tool`. */
  readonly results: boolean
  /** It knows thoughts. */
  readonly thinks: boolean
}

type Render = (context: Readonly<Record<string, unknown>>) => string

const needle = 'svc_needle'
const answer = 'svc_answer'
const user = { role: 'user', content: 'hi' }
const tools = [{ type: 'function', function: { name: needle, description: 'x', parameters: { type: 'object', properties: {} } } }]

/**
 * @param render the template; what throws says no. Nothing of it is shown.
 */
export function templateTraits (source: string, render: Render): TemplateTraits {
  const said = (context: Readonly<Record<string, unknown>>): string => {
    try {
      return render({ add_generation_prompt: false, ...context })
    } catch {
      return ''
    }
  }
  const withCall = (args: unknown, id = 'call00001'): string => {
    const call = { id, type: 'function', function: { name: 'clock', arguments: args } }
    return said({ messages: [user, { role: 'assistant', content: '', tool_calls: [call] }, user] })
  }
  // as JSON and with marks around each value, in whatever way the family spells it; not escaped once more
  const spelled = (text: string): boolean => text.includes(needle) && !text.includes(`\\"${needle}`)
  const calls = spelled(withCall({ [needle]: 1 })) ? 'object' : spelled(withCall(`{"${needle}": 1}`)) ? 'text' : null
  const args = calls === 'text' ? `{"${needle}": 1}` : { [needle]: 1 }
  const answered = [user, { role: 'assistant', content: '', tool_calls: [{ id: 'call00001', type: 'function', function: { name: 'clock', arguments: args } }] },
    { role: 'tool', name: 'clock', tool_call_id: 'call00001', content: answer }]
  return {
    tools: said({ messages: [user], tools }).includes(needle),
    calls,
    nineLetterIds: calls !== null && ['a1', 'a'.repeat(32)].some(id => !spelled(withCall(args, id))),
    results: /\btool(?:_call_id|_response|_responses)?\b|['"]tool['"]/.test(source) && said({ messages: answered }).includes(answer),
    thinks: source.includes('<think>')
  }
}

/** An id as the template takes it; the same for equal ids. Pure. */
export function callId (id: string, { nineLetterIds }: Pick<TemplateTraits, 'nineLetterIds'>): string {
  return nineLetterIds ? id.replace(/[^a-z0-9]/gi, '').slice(-9).padStart(9, '0') : id
}

/** Whether the answer to this prompt begins in the middle of thoughts, may begin with some, or has none. Pure. */
export function thoughtsAfter (prompt: string, traits: Pick<TemplateTraits, 'thinks'>): 'none' | 'maybe' | 'open' {
  if (!traits.thinks) return 'none'
  const end = prompt.trimEnd()
  return end.endsWith('<think>') ? 'open' : end.endsWith('</think>') ? 'none' : 'maybe'
}
