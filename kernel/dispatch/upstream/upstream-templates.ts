import type { ConfigSnapshot, ExternalProvider, Upstream, UpstreamTemplate } from '../../contract/index.js'

type Given = Pick<UpstreamTemplate, 'title' | 'url' | 'capabilities'> & Partial<UpstreamTemplate>

function template (id: string, { title, url, capabilities, ...more }: Given): UpstreamTemplate {
  return { id, title, url, auth_style: 'bearer', auth_header: '', auth_value_env: '', category: 'cloud', capabilities, ...more }
}

/** Public base URLs; keys come from the environment file. */
export const upstreamTemplates: readonly UpstreamTemplate[] = [
  template('openai', {
    title: 'OpenAI',
    url: 'https://api.openai.com/v1',
    auth_value_env: 'OPENAI_API_KEY',
    capabilities: ['chat', 'completions', 'responses', 'embeddings', 'transcription', 'speech', 'image']
  }),
  template('anthropic', {
    title: 'Anthropic',
    url: 'https://api.anthropic.com/v1',
    auth_style: 'anthropic',
    auth_value_env: 'ANTHROPIC_API_KEY',
    capabilities: ['chat', 'messages', 'count-tokens']
  }),
  template('openrouter', {
    title: 'OpenRouter',
    url: 'https://openrouter.ai/api/v1',
    auth_value_env: 'OPENROUTER_API_KEY',
    capabilities: ['chat', 'completions', 'embeddings']
  }),
  template('google_ai_studio', {
    title: 'Google AI Studio',
    url: 'https://generativelanguage.googleapis.com/v1beta/openai',
    auth_value_env: 'GEMINI_API_KEY',
    capabilities: ['chat', 'embeddings']
  }),
  template('deepseek', {
    title: 'DeepSeek', url: 'https://api.deepseek.com/v1', auth_value_env: 'DEEPSEEK_API_KEY', capabilities: ['chat']
  }),
  template('minimax', {
    title: 'MiniMax', url: 'https://api.minimax.io/v1', auth_value_env: 'MINIMAX_API_KEY', capabilities: ['chat', 'responses']
  }),
  template('ollama', {
    title: 'Ollama on this machine',
    url: 'http://127.0.0.1:11434/v1',
    auth_style: 'none',
    category: 'local',
    capabilities: ['chat', 'completions', 'embeddings']
  })
]

const byId = new Map(upstreamTemplates.map(row => [row.id, row]))

/** The upstream that an entry of providers.toml stands for; null when its template is unknown and it has no URL. */
export function upstreamOfProvider (provider: ExternalProvider): Upstream | null {
  const { catalog_id: id, name, base_url: baseUrl, auth_value_env: env, models, ...call } = provider
  const row = byId.get(id)
  const url = baseUrl ?? row?.url
  if (url === undefined) return null
  return {
    ...call,
    name: name ?? id.replaceAll('_', '-'),
    kind: 'remote',
    url,
    auth_style: row?.auth_style ?? (env === undefined ? 'none' : 'bearer'),
    auth_header: row?.auth_header ?? '',
    auth_value_env: env ?? row?.auth_value_env ?? '',
    slot_name: null,
    warmup_strategy: 'none',
    ...(models.length === 0 ? {} : { model_filters: { models, include: [], exclude: [] } })
  }
}

/** Remote upstreams of both files by name; a name in upstreams.toml wins over one in providers.toml. */
export function upstreamsOf ({ upstreams, providers }: ConfigSnapshot): ReadonlyMap<string, Upstream> {
  const named = new Map<string, Upstream>()
  for (const provider of providers) {
    const upstream = upstreamOfProvider(provider)
    if (upstream !== null) named.set(upstream.name, upstream)
  }
  for (const upstream of upstreams) if (upstream.kind === 'remote') named.set(upstream.name, upstream)
  return named
}
