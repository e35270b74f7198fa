#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Records that come after the flush that should have brought them, or one flush later, and a GPU
# that is never idle, so that CUPTI holds buffers back at every flush. A step must not be called
# complete before all of its records are there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# late NAME 'ENGINE OPTIONS'
late()
{
	trace_gpu "$2"
	truth_of "$1"
}

gpu_env=(FAKE_CUPTI_LATE=40)
late 'after the flush' '--steps 500 --script k50,h20.1,d10,s'
gpu_env=(FAKE_CUPTI_LATE=60 FAKE_CUPTI_LATE_MS=300)
late 'after the next flush' '--steps 500 --script k50,h20.1,d10,s'
gpu_env=(FAKE_CUPTI_SKIP=40)
late 'one flush later' '--steps 500 --script k50,h20.1,d10,s'
gpu_env=(FAKE_CUPTI_LATE=50 FAKE_CUPTI_SKIP=50 FAKE_CUPTI_VERSION=130100)
late 'both' '--steps 500 --step-threads 2 --script k50,h20.1,d10,s'
gpu_env=()
late 'never at rest' '--steps 300 --sleep-us 300 --script k400,k400 --outside s300'
late 'a second stream is never at rest' '--steps 1000 --sleep-us 300 --script k40,s,k300.5'

# More than one buffer of records, with a device that lags until the end.
gpu_env=()
start_gpu --linger-ms 60000 --steps 400 --sleep-us 100 --script a1,k80,k80,k80,k80,k80,k80,k80,k80,k80,k80
attach_gpu
go
wait_for 60 is_done
sleep 2
stop_tool
end_gpu
truth_of 'far behind'
fact 'far behind: nothing had to be waited for in vain' \
	'{r["shape"]["sealed"] for r in E if r["event"] == "gpu_prof"} == {"watermark"}'
finish
