/**
 * The plugins that come with the gateway. A name and a way to load it: nothing is imported before the host asks.
 * Order means nothing; dependencies are declared by the plugins.
 */
const builtins = [
  { name: 'imagegen', load: () => import('./providers/imagegen/index.js') },
  { name: 'llm-server', load: () => import('./providers/llm-server/index.js') },
  { name: 'npu-rt', load: () => import('./providers/npu-rt/index.js') },
  { name: 'stt-engine', load: () => import('./providers/stt-engine/index.js') },
  { name: 'tts-cpu', load: () => import('./providers/tts-cpu/index.js') },
  { name: 'tts-gpu', load: () => import('./providers/tts-gpu/index.js') },
  { name: 'v1-audio', load: () => import('./v1/audio/index.js') },
  { name: 'v1-images', load: () => import('./v1/images/index.js') },
  { name: 'v1-models', load: () => import('./v1/models/index.js') },
  { name: 'v1-messages', load: () => import('./v1/messages/index.js') },
  { name: 'v1-omni', load: () => import('./v1/omni/index.js') },
  { name: 'v1-responses', load: () => import('./v1/responses/index.js') },
  { name: 'v1-text', load: () => import('./v1/text/index.js') },
  { name: 'v1-vectors', load: () => import('./v1/vectors/index.js') },
  { name: 'api-activity', load: () => import('./api/activity/index.js') },
  { name: 'api-backends', load: () => import('./api/backends/index.js') },
  { name: 'api-capabilities', load: () => import('./api/capabilities/index.js') },
  { name: 'api-chat-templates', load: () => import('./api/chat-templates/index.js') },
  { name: 'api-config', load: () => import('./api/config/index.js') },
  { name: 'api-docs', load: () => import('./api/docs/index.js') },
  { name: 'api-events', load: () => import('./api/events/index.js') },
  { name: 'api-hardware', load: () => import('./api/hardware/index.js') },
  { name: 'api-images', load: () => import('./api/images/index.js') },
  { name: 'api-journal', load: () => import('./api/journal/index.js') },
  { name: 'api-hf', load: () => import('./api/hf/index.js') },
  { name: 'api-meta', load: () => import('./api/meta/index.js') },
  { name: 'api-model-store', load: () => import('./api/model-store/index.js') },
  { name: 'api-models', load: () => import('./api/models/index.js') },
  { name: 'api-plugins', load: () => import('./api/plugins/index.js') },
  { name: 'api-profiles', load: () => import('./api/profiles/index.js') },
  { name: 'api-requests', load: () => import('./api/requests/index.js') },
  { name: 'api-secrets', load: () => import('./api/secrets/index.js') },
  { name: 'api-settings', load: () => import('./api/settings/index.js') },
  { name: 'api-slots', load: () => import('./api/slots/index.js') },
  { name: 'api-stacks', load: () => import('./api/stacks/index.js') },
  { name: 'api-status', load: () => import('./api/status/index.js') },
  { name: 'api-upstreams', load: () => import('./api/upstreams/index.js') },
  { name: 'library', load: () => import('./services/library/index.js') },
  { name: 'pull', load: () => import('./services/pull/index.js') },
  { name: 'hub', load: () => import('./services/hub/index.js') },
  { name: 'demo', load: () => import('./services/demo/index.js') }
]

export default builtins
