import { defineErrors } from 'svc-gateway/plugin'

export const servicesError = defineErrors('services', {
  unknown: { status: 404, when: 'no service has this id' },
  action_required: { status: 400, when: 'an order to a service names no action' },
  action_not_allowed: { status: 400, when: 'the service does not have this action' },
  advertise_required: { status: 400, when: 'an order about announcements does not say whether to announce' },
  cannot_install: { status: 409, when: 'the service cannot be brought to this machine' },
  not_made_here: { status: 409, when: 'what is to be uninstalled runs as a slot that was not made by its installation, or its data is such a slot\'s as well' },
  data_left: { status: 409, when: 'a service was uninstalled, and the gateway\'s user may not delete some of its data' },
  data_linked: { status: 409, when: 'a service is to be uninstalled with its data, whose folder is a link' },
  install_failed: { status: 502, when: 'the service could not be brought from its registry' }
})
