killall -s {{ Signal }} "{{ ProcessName }}"
