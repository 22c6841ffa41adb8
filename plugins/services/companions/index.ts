import { definePlugin, defineService } from 'svc-gateway/plugin'
import { openWebui } from './open-webui.js'

/** The image engine runs as a slot; its verbs are the slot's. */
const comfyui = defineService({
  id: 'comfyui',
  name: 'ComfyUI',
  description: 'The image engine',
  licence: { name: 'GPL-3.0', note: null, url: 'https://github.com/comfyanonymous/ComfyUI/blob/master/LICENSE' },
  unit: 'svc-slot@img.service',
  port: 8188,
  verbs: ['start', 'restart'],
  probe: '/system_stats',
  page: '/',
  mdns: true,
  publicUrlVariable: 'SVC_COMFYUI_PUBLIC_URL',
  hints: ['it runs as a slot: svc slot edit changes it, and image requests start it'],
  slot: 'image',
  slotOffer: { bytes: null, data: 'comfyui' }
})

const hermes = defineService({
  id: 'hermes',
  name: 'Hermes',
  description: 'An agent with its own tools, memory and dashboard',
  licence: { name: 'MIT', note: null, url: null },
  unit: 'svc-agent@hermes.service',
  port: 9119,
  verbs: ['start', 'stop', 'restart', 'enable', 'disable'],
  probe: '/api/status',
  page: '/',
  mdns: false,
  loopback: true,
  publicUrlVariable: 'SVC_HERMES_PUBLIC_URL'
})

/** The programs that are useful beside this gateway, as descriptors; api-services runs them. */
export default definePlugin({
  name: 'companions',
  kind: 'service',
  apiVersion: 1,
  register (ctx) {
    for (const service of [openWebui, comfyui, hermes]) ctx.addService(service)
  }
})
