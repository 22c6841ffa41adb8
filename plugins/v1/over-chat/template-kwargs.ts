import { isObject } from './json.js'

/**
 * Whether the model thinks, in the words of a slot's template, beside what a request says to the template itself; that wins.
 * @param isOn null leaves it to the template
 * @param own `chat_template_kwargs` of the request
 */
export function thinkingKwargs (isOn: boolean | null, own: unknown): object {
  if (isOn === null) return {}
  const { enable_thinking: asked, ...others } = isObject(own) ? own : {}
  return { chat_template_kwargs: { ...others, enable_thinking: asked ?? isOn } }
}
