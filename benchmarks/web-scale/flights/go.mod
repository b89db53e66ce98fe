module troop/flights

go 1.26
