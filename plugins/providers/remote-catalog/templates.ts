import type { UpstreamTemplateInput } from 'svc-gateway/plugin'

/** Public base URLs; keys come from the environment file. */
export const templates: readonly UpstreamTemplateInput[] = [
  {
    id: 'openai',
    title: 'OpenAI',
    url: 'https://api.openai.com/v1',
    auth_value_env: 'OPENAI_API_KEY',
    capabilities: [
      'chat', 'completions', 'responses', 'embeddings', 'transcription', 'translation', 'speech', 'image', 'image-edit', 'image-variation',
      'moderation'
    ]
  },
  {
    id: 'anthropic',
    title: 'Anthropic',
    url: 'https://api.anthropic.com/v1',
    auth_style: 'anthropic',
    auth_value_env: 'ANTHROPIC_API_KEY',
    capabilities: ['chat', 'messages', 'count-tokens']
  },
  {
    id: 'openrouter',
    title: 'OpenRouter',
    url: 'https://openrouter.ai/api/v1',
    auth_value_env: 'OPENROUTER_API_KEY',
    capabilities: ['chat', 'completions', 'embeddings']
  },
  {
    id: 'google_ai_studio',
    title: 'Google AI Studio',
    url: 'https://generativelanguage.googleapis.com/v1beta/openai',
    auth_value_env: 'GEMINI_API_KEY',
    capabilities: ['chat', 'embeddings']
  },
  {
    id: 'deepseek',
    title: 'DeepSeek', url: 'https://api.deepseek.com/v1', auth_value_env: 'DEEPSEEK_API_KEY', capabilities: ['chat']
  },
  {
    id: 'minimax',
    title: 'MiniMax', url: 'https://api.minimax.io/v1', auth_value_env: 'MINIMAX_API_KEY', capabilities: ['chat', 'responses']
  },
  {
    id: 'ollama',
    title: 'Ollama on this machine',
    url: 'http://127.0.0.1:11434/v1',
    auth_style: 'none',
    category: 'local',
    capabilities: ['chat', 'completions', 'embeddings']
  }
]
