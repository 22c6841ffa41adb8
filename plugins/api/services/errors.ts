import { defineErrors } from 'svc-gateway/plugin'

export const servicesError = defineErrors('services', {
  unknown: { status: 404, when: 'no service has this id' },
  action_required: { status: 400, when: 'a request to a service has no action' },
  action_not_allowed: { status: 400, when: 'the service does not have this action' },
  advertise_required: { status: 400, when: 'a request about announcements does not say whether to announce' },
  cannot_install: { status: 409, when: 'the service cannot be installed on this machine' },
  not_made_here: { status: 409, when: 'the service to uninstall runs as a slot that its installation did not create, or shares its data with one' },
  data_left: { status: 409, when: 'a service was uninstalled, but the user of the gateway may not delete some of its data' },
  data_linked: { status: 409, when: 'the data folder of the service to uninstall is a link' },
  install_failed: { status: 502, when: 'the service could not be downloaded from its registry' }
})
