import { given, type Json } from '../over-chat/ref.js'
import { saidIn, type CallItem, type Item, type MessageItem } from './items.js'
import type { Settings } from './settings.js'

/** What the model is asked, in the words of chat completions. Pure. */
export function chatRequest (settings: Settings, items: readonly Item[]): Json {
  const first = items.findIndex(item => item.type !== 'message' || item.role !== 'system')
  const head = first === -1 ? items : items.slice(0, first)
  // many templates know no second one
  const texts = [settings.instructions, ...head.map(item => textOf(item as MessageItem))]
  const system = texts.filter(text => text !== '').join('\n\n')
  return {
    model: settings.model,
    messages: [...system === '' ? [] : [{ role: 'system', content: system }], ...messagesOf(items.slice(head.length))],
    stream: true,
    stream_options: { include_usage: true },
    ...settings.tools.length === 0 ? {} : toolsOf(settings),
    ...settings.maxOutputTokens === 'inf' ? {} : { max_tokens: settings.maxOutputTokens },
    ...settings.temperature === null ? {} : { temperature: settings.temperature },
    ...settings.effort === null ? {} : { reasoning_effort: settings.effort }
  }
}

interface Message extends Json {
  readonly role: string
  readonly content: unknown
  readonly tool_calls?: readonly Json[]
}

/** Calls stand with the answer that they are of. */
function messagesOf (items: readonly Item[]): Message[] {
  const messages: Message[] = []
  for (const item of items) {
    if (item.type === 'function_call') {
      const last = messages.at(-1)
      if (last?.role === 'assistant') messages[messages.length - 1] = { ...last, tool_calls: [...last.tool_calls ?? [], callOf(item)] }
      else messages.push({ role: 'assistant', content: null, tool_calls: [callOf(item)] })
    } else if (item.type === 'function_call_output') {
      messages.push({ role: 'tool', tool_call_id: item.callId, content: item.output })
    } else {
      const content = contentOf(item)
      if (content !== null) messages.push({ role: item.role, content })
    }
  }
  return messages
}

/** Null for one that says nothing, such as an answer that was cut off at once. */
function contentOf (item: MessageItem): unknown {
  const { role, parts } = item
  if (parts.some(part => part.type === 'input_image')) {
    return parts.map(part => part.type === 'input_image'
      ? { type: 'image_url', image_url: { url: part.url, ...part.detail === null ? {} : { detail: part.detail } } }
      : { type: 'text', text: saidIn(part) })
  }
  const text = textOf(item)
  return text === '' && role === 'assistant' ? null : text
}

function textOf ({ parts }: MessageItem): string {
  return parts.map(saidIn).filter(text => text !== '').join('\n')
}

function callOf ({ callId, name, args }: CallItem): Json {
  return { id: callId, type: 'function', function: { name, arguments: args } }
}

function toolOf ({ name, description, parameters }: Json): Json {
  return { type: 'function', function: { name, ...given({ description, parameters }) } }
}

function toolsOf ({ tools, toolChoice, parallelToolCalls }: Settings): Json {
  return { tools: tools.map(toolOf), tool_choice: choiceOf(toolChoice), ...given({ parallel_tool_calls: parallelToolCalls }) }
}

function choiceOf (choice: unknown): unknown {
  return typeof choice === 'object' && choice !== null ? { type: 'function', function: { name: (choice as Json).name } } : choice
}
