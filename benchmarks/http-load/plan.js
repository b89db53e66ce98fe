// The plan of http-load for k6: one address, at a rate or with users that do not pause. It knows nothing of Troop.
import http from 'k6/http';

const rate = Number(__ENV.rate);
const users = Number(__ENV.users);

export const options = {
  discardResponseBodies: true,
  scenarios: {
    load: rate > 0
      ? { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: __ENV.duration, preAllocatedVUs: users, maxVUs: users }
      : { executor: 'constant-vus', vus: users, duration: __ENV.duration },
  },
};

export default function () {
  http.get(__ENV.url, { tags: { name: 'get' } });
}
