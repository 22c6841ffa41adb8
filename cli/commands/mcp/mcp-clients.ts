import { join } from 'node:path'

export const mcpClients = [
  'claude-code', 'claude-desktop', 'cursor', 'vscode', 'codex', 'opencode', 'qwen-code', 'cline', 'continue', 'gemini-cli', 'hermes'
] as const
export type McpClient = typeof mcpClients[number]

export interface Connection {
  /** Where the client keeps it, unless told otherwise. */
  readonly file: string
  readonly format: 'json' | 'toml' | 'yaml'
  /** The keys that lead to the table of the entry. YAML: none. */
  readonly path: readonly string[]
  /** For JSON: what stands there under its name. */
  readonly entry: unknown
  /** The whole block, or for JSON a file with nothing else in it. */
  readonly text: string
  /** Left out where the file is there. */
  readonly onlyIfNew?: boolean
}

export interface ConnectionInput {
  readonly client: McpClient
  /** Of the tool server. */
  readonly url: string
  /** Under which the client knows it. */
  readonly name: string
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** What a client's configuration says to reach a tool server of this gateway, and where that stands. Pure. */
export function connectionOf (input: ConnectionInput): Connection {
  const { client, url, name, home, env, platform } = input
  const headers = { 'X-svc-Agent': client }
  const apps = platform === 'darwin' ? join(home, 'Library', 'Application Support') : env.XDG_CONFIG_HOME ?? join(home, '.config')
  const json = (file: string, path: readonly string[], entry: Readonly<Record<string, unknown>>): Connection => {
    const whole = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), { [name]: entry })
    return { file, format: 'json', path, entry, text: `${JSON.stringify(whole, null, 2)}\n` }
  }
  switch (client) {
    case 'claude-code': return json(join(home, '.claude.json'), ['mcpServers'], { type: 'http', url, headers })
    case 'claude-desktop': return json(join(apps, 'Claude', 'claude_desktop_config.json'), ['mcpServers'], {
      command: 'npx', args: ['-y', 'mcp-remote', url, '--allow-http', '--header', `X-svc-Agent:${client}`]
    })
    case 'cursor': return json(join(home, '.cursor', 'mcp.json'), ['mcpServers'], { url, headers })
    case 'vscode': return json(join(apps, 'Code', 'User', 'mcp.json'), ['servers'], { type: 'http', url, headers })
    case 'opencode': return json(join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'opencode', 'opencode.json'), ['mcp'],
      { type: 'remote', url, enabled: true, headers })
    case 'qwen-code': return json(join(home, '.qwen', 'settings.json'), ['mcpServers'], { httpUrl: url, headers })
    case 'gemini-cli': return json(join(home, '.gemini', 'settings.json'), ['mcpServers'], { httpUrl: url, headers })
    case 'cline': return json(join(home, '.cline', 'data', 'settings', 'cline_mcp_settings.json'), ['mcpServers'],
      { type: 'streamableHttp', url, headers, disabled: false })
    case 'codex': return text(join(env.CODEX_HOME ?? join(home, '.codex'), 'config.toml'), 'toml',
      `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}\nhttp_headers = { "X-svc-Agent" = "${client}" }\n`)
    case 'continue': return text(join(home, '.continue', 'config.yaml'), 'yaml',
      `mcpServers:\n  - name: ${name}\n    type: streamable-http\n    url: ${url}\n    requestOptions:\n      headers:\n        X-svc-Agent: ${client}\n`)
    case 'hermes': return text(join(env.HERMES_HOME ?? join(home, '.hermes'), 'config.yaml'), 'yaml',
      `mcp_servers:\n  ${name}:\n    url: ${url}\n    headers:\n      X-svc-Agent: ${client}\n`)
  }
}

function text (file: string, format: 'toml' | 'yaml', block: string): Connection {
  return { file, format, path: format === 'toml' ? ['mcp_servers'] : [], entry: null, text: block }
}
