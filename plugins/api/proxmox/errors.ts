import { defineErrors } from 'svc-gateway/plugin'

export const proxmoxError = defineErrors('proxmox', {
  config_invalid: { status: 400, when: 'the settings of the Proxmox host are incomplete or invalid' },
  token_required: { status: 400, when: 'the settings of the Proxmox host have no token, and none is stored' },
  write_failed: { status: 500, when: 'the file with the settings of the Proxmox host cannot be written' }
})
