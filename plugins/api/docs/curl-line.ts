interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: { readonly examples?: readonly unknown[], readonly enum?: readonly unknown[] }
}

export interface ShownOperation {
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly example?: unknown }>> }
  readonly responses?: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>
}

/**
 * The line for a terminal that makes an operation's call with its examples. It becomes part of the page as its own text,
 * so it uses nothing from outside. Pure.
 * @param base address of the gateway without a slash at its end
 */
export function curlLine (base: string, method: string, path: string, operation: ShownOperation): string {
  const quoted = (text: string): string => `'${text.replaceAll('\'', '\'\\\'\'')}'`
  const valueOf = ({ name, schema = {} }: Parameter): string => String((schema.examples ?? schema.enum ?? [name])[0])
  const parameters = operation.parameters ?? []
  const place = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = parameters.find(one => one.in === 'path' && one.name === name)
    // what stands for the rest of a path keeps its slashes
    return parameter === undefined ? whole : encodeURIComponent(valueOf(parameter)).replaceAll('%2F', '/')
  })
  const asked = parameters.filter(one => one.in === 'query' && one.required === true)
  const query = asked.map(one => `${encodeURIComponent(one.name)}=${encodeURIComponent(valueOf(one))}`).join('&')
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  const [first] = Object.values(operation.responses ?? {})
  const answers = Object.keys(first?.content ?? {})
  const options: string[] = []
  if (answers[0] === 'text/event-stream') options.push('-N')
  if (answers[0]?.startsWith('image/') === true) options.push('-o image.png')
  if (answers.includes('audio/*')) options.push('-o speech.mp3')
  if (method.toUpperCase() !== (content === undefined ? 'GET' : 'POST')) options.push(`-X ${method.toUpperCase()}`)
  const lines = [['curl', ...options, quoted(base + place + (query === '' ? '' : `?${query}`))].join(' ')]
  if (type === 'multipart/form-data') {
    for (const [name, value] of Object.entries(content?.example ?? {})) lines.push(`-F ${quoted(`${name}=${String(value)}`)}`)
  } else if (type === 'application/x-www-form-urlencoded') {
    for (const [name, value] of Object.entries(content?.example ?? {})) lines.push(`--data-urlencode ${quoted(`${name}=${String(value)}`)}`)
  } else if (content?.example !== undefined) {
    lines.push(`-H ${quoted(`content-type: ${String(type)}`)}`, `-d ${quoted(JSON.stringify(content.example))}`)
  }
  return lines.join(' \\\n  ')
}
