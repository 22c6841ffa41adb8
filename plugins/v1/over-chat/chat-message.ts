import { given, type Json } from './json.js'

/** What a model said, out of its pieces, as a message of a chat completion request. */
export function saidMessage (texts: readonly string[], thoughts: readonly string[], calls: readonly object[]): Json {
  const content = texts.join('')
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...given({
      reasoning_content: thoughts.length > 0 ? thoughts.join('') : null,
      tool_calls: calls.length > 0 ? calls : null
    })
  }
}

/** One text is a string: many templates know no other content. */
export function plainOr (parts: readonly object[]): unknown {
  return parts.every(part => 'text' in part) ? parts.map(part => (part as { readonly text: string }).text).join('\n') : parts
}
